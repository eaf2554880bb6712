#!/bin/bash
# An H2 database in memory (packages: libh2-java)
N=${N:-100} jars=(h2.jar) args=()
. "$(dirname "$0")/../run.sh"
