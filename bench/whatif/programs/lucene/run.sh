#!/bin/bash
# A Lucene index in memory (packages: liblucene4.10-java)
N=${N:-60} jars=(lucene-core-4.10.4.jar lucene-analyzers-common-4.10.4.jar lucene-queryparser-4.10.4.jar) args=()
. "$(dirname "$0")/../run.sh"
