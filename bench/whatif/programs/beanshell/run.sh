#!/bin/bash
# The BeanShell interpreter runs a script (packages: libbsh-java)
N=${N:-200} jars=(bsh.jar) args=()
. "$(dirname "$0")/../run.sh"
