#!/bin/bash
# cpu.sh DEPTH ROUNDS PROGRAM…: CPU seconds of application and of recorder, and bytes recorded, by mode of compression; modes in turns.
set -eu
depth=$1; rounds=$2; shift 2
here=$(cd "$(dirname "$0")/.." && pwd); tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
declare -A n=([compiler-compiler]=1 [compiler-crypto]=8 [derby]=20 [serial]=250 [sunflow]=1 [xml-transform]=40 [xml-validation]=60)
declare -A h=([compiler-compiler]=512m [compiler-crypto]=192m [derby]=192m [serial]=128m [sunflow]=128m [xml-transform]=128m [xml-validation]=128m)
for w in "$@"; do
  for r in $(seq "$rounds"); do
    for m in none full adaptive partial; do
      rm -rf "$tmp/out"
      export JAVA_OPTS="-XX:+UseParallelGC -Xms${h[$w]} -Xmx${h[$w]}" N=${n[$w]} TIMEFORMAT="%U %S"
      { time "$here/../bin/heapcam" run --depth "$depth" --compression "$m" --out "$tmp/out" -- bash -c '{ time "$0" >/dev/null 2>&1; } 2>"$1"' \
        "$here/workloads/$w/run.sh" "$tmp/app" 2>/dev/null; } 2>"$tmp/all"
      read -r u s <"$tmp/all"; read -r au as <"$tmp/app"
      echo "$w $depth $m $(echo "$au + $as" | bc) $(echo "$u + $s - $au - $as" | bc) $(du -sb "$tmp/out" | cut -f1)"
    done
  done
done
