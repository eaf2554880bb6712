#!/bin/bash
# points: two threads move points, which are immutable objects, and keep those of the last step; many small objects
# packages: none (JDK only)
# Environment: JAVA (launcher), JAVA_OPTS (collector, heap, agent), N (amount of work, default 200), WORK (scratch folder),
#              JAVAC17 (compiler of the driver; always --release 11 so that every JDK runs the same classes).
# "./run.sh prepare" only compiles the driver.  One JVM process; the last line is "WORKLOAD points n=<N> elapsed_ms=<ms>"
# when the run was right, and the exit status is 0.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../driver.sh" "$here" 200 "$@"
