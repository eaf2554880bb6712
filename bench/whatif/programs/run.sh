# The rest of each program's run.sh, which names its jars, its amount of work N, and what else Driver gets (args).
# Environment: JAVA (launcher), JAVA_OPTS (collector, heap, agent), N (amount of work), WORK (scratch folder), JAVAC17
# (compiler of the driver; always --release 11, so that every JDK runs the same classes).
# "./run.sh prepare" only compiles the driver.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
JAVA=${JAVA:-/usr/lib/jvm/java-17-openjdk-amd64/bin/java}
JAVAC17=${JAVAC17:-/usr/lib/jvm/java-17-openjdk-amd64/bin/javac}
WORK=${WORK:-${WORKLOADS_HOME:-$HOME/.cache/heapcam-workloads}/$(basename "$here")}
cp=$WORK/classes
for jar in "${jars[@]}"; do cp=$cp:/usr/share/java/$jar; done
mkdir -p "$WORK/classes"
if [ "$here/Driver.java" -nt "$WORK/classes/Driver.class" ]; then
  "$JAVAC17" --release 11 -nowarn -proc:none -Xlint:-options -cp "$cp" -d "$WORK/classes" "$here"/*.java
fi
[ "${1:-}" = prepare ] && exit 0
cd "$WORK"
exec "$JAVA" ${JAVA_OPTS:-} -cp "$cp" Driver "$N" "${args[@]}"
