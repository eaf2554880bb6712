#!/bin/bash
# pressure.sh ROUNDS RING PROGRAM…: collections lost, by mode of compression, at depth full through a small shared ring, while two other
# processes use both cores; modes in turns.
set -eu
rounds=$1; ring=$2; shift 2
here=$(cd "$(dirname "$0")/.." && pwd); tmp=$(mktemp -d); busy=()
trap 'kill "${busy[@]}"; rm -rf "$tmp"' EXIT
for _ in 1 2; do (while :; do :; done) & busy+=($!); done
declare -A n=([compiler-compiler]=1 [compiler-crypto]=8 [derby]=20 [serial]=250 [sunflow]=1 [xml-transform]=40 [xml-validation]=60)
declare -A h=([compiler-compiler]=512m [compiler-crypto]=192m [derby]=192m [serial]=128m [sunflow]=128m [xml-transform]=128m [xml-validation]=128m)
for w in "$@"; do
  for r in $(seq "$rounds"); do
    for m in none adaptive full; do
      rm -rf "$tmp/out"
      JAVA_OPTS="-XX:+UseParallelGC -Xms${h[$w]} -Xmx${h[$w]}" N=${n[$w]} "$here/../bin/heapcam" run --depth full --shm-size "$ring" --compression "$m" \
        --max-trace-size 8GiB --out "$tmp/out" -- "$here/workloads/$w/run.sh" >/dev/null 2>"$tmp/err" || { cat "$tmp/err"; exit 1; }
      lost=$("$here/../bin/heapcam" report --json "$tmp"/out/* | grep -o "\"lost_epochs\": *[0-9]*" | grep -o "[0-9]*$"); echo "$w $ring $m $(grep -o "[0-9]* collections" "$tmp/err"), ${lost:-0} lost, $(du -sb "$tmp/out" | cut -f1) bytes"
    done
  done
done
