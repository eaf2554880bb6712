#!/bin/bash
# numbers: two threads put boxed numbers into a list, a queue of entries and a map of sums; many small objects
# packages: none (JDK only)
# Environment: JAVA (launcher), JAVA_OPTS (collector, heap, agent), N (amount of work, default 200), WORK (scratch folder),
#              JAVAC17 (compiler of the driver; always --release 11 so that every JDK runs the same classes).
# "./run.sh prepare" only compiles the driver.  One JVM process; the last line is "WORKLOAD numbers n=<N> elapsed_ms=<ms>"
# when the run was right, and the exit status is 0.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../driver.sh" "$here" 200 "$@"
