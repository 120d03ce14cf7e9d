#!/usr/bin/env bash
# Runs every test that this machine can run, in two parts: first, as many at a time as there are
# processors, those that no clock on a wall can fail; then, one by one, those with real networks,
# processes and time. Arguments are pytest's.
set -uo pipefail
cd "$(dirname "$0")/.."

nothing_to_do=5
worst=$nothing_to_do

part() {
  local code=0
  .venv/bin/python -m pytest --part "$@" || code=$?
  # A part that nothing was asked of says nothing about the other.
  if [ $code != $nothing_to_do ] && { [ $worst = $nothing_to_do ] || [ $worst = 0 ]; }; then
    worst=$code
  fi
  # Interrupted, or asked for something that there is not: the other part would be no better.
  [ $code != 2 ] && [ $code != 3 ] && [ $code != 4 ]
}

part sharing --numprocesses auto --maxprocesses 4 --dist loadfile "$@" && part alone "$@"
exit $worst
