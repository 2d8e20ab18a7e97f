#!/bin/sh
# sum.sh PROGRAM -- runs sum.c as a coordinator and three workers, on a private
# Unix socket.
set -eu
dir=$(mktemp -d)
trap 'kill $workers 2>/dev/null || true; rm -rf "$dir"' EXIT
workers=
for _ in 1 2 3; do
    "$1" "ipc://$dir/socket" worker &
    workers="$workers $!"
done
"$1" "ipc://$dir/socket" >"$dir/out"
cat "$dir/out"
# Both columns are printed to 12 digits: they must be the same.
awk '{ sub(",", "", $4); if ($4 != $NF) exit 1; n++ } END { exit n != 4 }' "$dir/out"
wait $workers
