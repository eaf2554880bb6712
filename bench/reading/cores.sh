#!/bin/bash
# cores.sh RECORDING [ROUNDS]: seconds and CPU seconds that verbs take to read a recording on one core and on two, in
# turns, without a cache. VERBS: which (coverage and verify).
set -eu
rec=$1; rounds=${2:-5}
here=$(cd "$(dirname "$0")/../.." && pwd); tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache TIMEFORMAT="%R s, CPU %U + %S s"
for verb in ${VERBS:-coverage verify}; do
  for _ in $(seq "$rounds"); do
    for cores in 0 0,1; do
      rm -rf "$XDG_CACHE_HOME"
      { time taskset -c "$cores" "$here/bin/heapcam" "$verb" "$rec" >"$tmp/out"; } 2>"$tmp/time" || { cat "$tmp/time"; exit 1; }
      echo "$verb, cores $cores: $(tail -n 1 "$tmp/time")"
    done
  done
done
