#!/usr/bin/env bash
# Runs every test that this machine can run, in two parts: first, as many at a time as there are
# processors, those that need only a processor; then, one by one, those with real networks, other
# programs and time. Arguments are pytest's; one that writes a file has the second part's in it.
set -uo pipefail
cd "$(dirname "$0")/.."

nothing_to_do=5
worst=$nothing_to_do

part() {
  local name=$1 code=0
  shift
  .venv/bin/python -m pytest "$@" --part "$name" || code=$?
  # A part that nothing was asked of says nothing about the other.
  if [ $code != 0 ] && [ $code != $nothing_to_do ]; then
    failed+=" $name"
  fi
  if [ $code != $nothing_to_do ] && { [ $worst = $nothing_to_do ] || [ $worst = 0 ]; }; then
    worst=$code
  fi
  # Interrupted, or asked for something that there is not: the other part would be no better.
  [ $code != 2 ] && [ $code != 3 ] && [ $code != 4 ]
}

failed=
# Beside others a test takes longer, and one that compiles much longer.
part sharing "$@" --numprocesses auto --maxprocesses 4 --dist loadfile -o timeout=300 \
  && part alone "$@" --numprocesses 0 -o timeout=600
[ -z "$failed" ] || printf 'tests: not all passed in the part:%s\n' "$failed" >&2
exit $worst
