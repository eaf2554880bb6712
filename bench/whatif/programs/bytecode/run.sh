#!/bin/bash
# ASM follows the data flow of the classes of Guava (packages: libasm-java libguava-java)
N=${N:-20} jars=(asm.jar asm-tree.jar asm-analysis.jar) args=(/usr/share/java/guava.jar)
. "$(dirname "$0")/../run.sh"
