#!/usr/bin/env bash
# Runs the tests that this machine can run, in two parts: first those that may run beside others, a
# few at a time; then, two at a time, those that need real networks, containers or time. `--full`
# adds the tests that are marked `full`. All arguments are pytest's; a file that an argument names
# has the results of the second part.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests start hundreds of interpreters, which would all compile the same modules.
unset PYTHONDONTWRITEBYTECODE

nothing_to_do=5
worst=$nothing_to_do

part() {
  local name=$1 code=0
  shift
  # A disk that runs full fails hundreds of tests, none of which names it.
  df -Pm "${TMPDIR:-/tmp}" . | awk -v part="$name" \
    'NR > 1 { printf "tests: part %s begins with %d MiB free in %s\n", part, $4, $6 }' | uniq >&2
  .venv/bin/python -m pytest "$@" --part "$name" || code=$?
  # A part in which no test was selected says nothing about the other part.
  if [ $code != 0 ] && [ $code != $nothing_to_do ]; then
    failed+=" $name"
  fi
  if [ $code != $nothing_to_do ] && { [ $worst = $nothing_to_do ] || [ $worst = 0 ]; }; then
    worst=$code
  fi
  # Interrupted, or wrong arguments: the other part would end in the same way.
  [ $code != 2 ] && [ $code != 3 ] && [ $code != 4 ]
}

failed=
# One more than there are processors, up to four, since some tests wait for other programs.
processes=$(($(nproc) < 4 ? $(nproc) + 1 : 4))
# A test takes longer beside others, and much longer if it compiles. Files start in the order of
# tests/conftest.py, the long ones first, instead of by their number of tests.
part sharing "$@" --durations 50 --numprocesses "$processes" --dist loadfile \
  --no-loadscope-reorder -o timeout=300 \
  && part alone "$@" --durations 50 --numprocesses 2 --dist loadscope -o timeout=600
[ -z "$failed" ] || printf 'tests: some failed in part:%s\n' "$failed" >&2
exit $worst
