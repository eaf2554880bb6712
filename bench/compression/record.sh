#!/bin/bash
# record.sh OUT: records each program of bench/workloads at depth full without compression, for `compression OUT/*/*`.
set -eu
out=${1:?OUT}; here=$(cd "$(dirname "$0")/.." && pwd)
for w in "compiler-compiler 512m 2" "compiler-crypto 192m 10" "derby 192m 30" "serial 128m 300" "sunflow 128m 2" "xml-transform 128m 60" "xml-validation 128m 100"; do
  set -- $w
  JAVA_OPTS="-XX:+UseParallelGC -Xms$2 -Xmx$2" N=$3 "$here/../bin/heapcam" run --depth full --compression none --max-trace-size 3GiB --out "$out/$1" -- "$here/workloads/$1/run.sh"
done
