#!/bin/bash
# points: two threads move points, which are immutable objects, and keep those of the last step; many small objects
# packages: none (JDK only)
# Environment: JAVA (launcher), JAVA_OPTS (collector, heap, agent), N (amount of work, default 200), WORK (scratch folder),
#              JAVAC17 (compiler of the driver; always --release 11 so that every JDK runs the same classes).
# "./run.sh prepare" only prepares the inputs and compiles the driver.  One JVM process; the last line is
# "WORKLOAD points n=<N> elapsed_ms=<ms>" when the run was right, and the exit status is 0.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
JAVA=${JAVA:-/usr/lib/jvm/java-17-openjdk-amd64/bin/java}
JAVAC17=${JAVAC17:-/usr/lib/jvm/java-17-openjdk-amd64/bin/javac}
WORK=${WORK:-${WORKLOADS_HOME:-$HOME/.cache/heapcam-workloads}/points}; N=${N:-200}
J=/usr/share/java
mkdir -p "$WORK/classes"
prepare() { :; }
CP=
ARGS=("$N")
cp=${CP:+$CP:}$WORK/classes
if [ -f "$here/Driver.java" ] && [ "$here/Driver.java" -nt "$WORK/classes/Driver.class" ]; then
  "$JAVAC17" --release 11 -nowarn -proc:none -Xlint:-options -cp "$cp" -d "$WORK/classes" "$here"/*.java
fi
prepare
[ "${1:-}" = prepare ] && exit 0
cd "$WORK"
exec "$JAVA" ${JAVA_OPTS:-} ${VMARGS:-} -cp "$cp" "${MAIN:-Driver}" "${ARGS[@]}"
