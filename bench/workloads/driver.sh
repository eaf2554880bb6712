#!/bin/bash
# driver.sh FOLDER N [prepare]: compiles FOLDER/Driver.java, which needs the JDK alone, and runs it; N: the default
# amount of work. Environment: as of the run.sh of all programs.
set -euo pipefail
here=$1
JAVA=${JAVA:-/usr/lib/jvm/java-17-openjdk-amd64/bin/java}
JAVAC17=${JAVAC17:-/usr/lib/jvm/java-17-openjdk-amd64/bin/javac}
WORK=${WORK:-${WORKLOADS_HOME:-$HOME/.cache/heapcam-workloads}/$(basename "$here")}; N=${N:-$2}
mkdir -p "$WORK/classes"
if [ "$here/Driver.java" -nt "$WORK/classes/Driver.class" ]; then
  "$JAVAC17" --release 11 -nowarn -proc:none -Xlint:-options -d "$WORK/classes" "$here"/*.java
fi
[ "${3:-}" = prepare ] && exit 0
cd "$WORK"
exec "$JAVA" ${JAVA_OPTS:-} ${VMARGS:-} -cp "$WORK/classes" Driver "$N"
