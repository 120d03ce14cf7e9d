#!/usr/bin/env bash
# Runs the tests that this machine can run, in two parts: first those that may run beside others, a
# few at a time; then, in three groups, those that need real networks, containers or time. `--full`
# adds the tests that are marked `full`. All arguments are pytest's; a file that an argument names
# has the results of the second part.
set -uo pipefail
cd "$(dirname "$0")/.."

# Tests start hundreds of interpreters, which would all compile the same modules.
unset PYTHONDONTWRITEBYTECODE
# numpy's threads wait actively, in each of these interpreters.
export OPENBLAS_NUM_THREADS=1

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

# Tests write and remove some 200,000 small files, which takes half as long in memory. Those of
# failed tests are kept until the next run.
failed=
in_memory=()
for earlier in /dev/shm/tests.*; do
  pid=${earlier#*.}
  [ -O "$earlier" ] && ! kill -0 "${pid%.*}" 2>/dev/null && rm -rf "$earlier"
done
free=$(df -Pm /dev/shm 2>/dev/null | awk 'NR > 1 { print $4 }')
if [ "${free:-0}" -ge 4096 ]; then
  files=$(mktemp -d /dev/shm/tests.$$.XXXX)
  trap '[ -n "$failed" ] || rm -rf "$files"' EXIT
  # A short path, because those of sockets have at most 107 bytes.
  in_memory=(--basetemp "$files/sharing")
fi

# One more than processors, up to four, since many tests wait for other programs. Each collects all
# tests, which takes 13 seconds of CPU time.
processes=$(($(nproc) < 4 ? $(nproc) + 1 : 4))
# A test takes longer beside others, and much longer if it compiles. Files start in the order of
# tests/conftest.py, the long ones first, instead of by their number of tests.
TMPDIR=${files:-${TMPDIR:-/tmp}} part sharing "${in_memory[@]}" "$@" --durations 50 \
  --numprocesses "$processes" --dist loadfile --no-loadscope-reorder -o timeout=300 \
  && part alone "$@" --durations 50 --numprocesses 3 --dist loadscope -o timeout=600
[ -z "$failed" ] || printf 'tests: some failed in part:%s\n' "$failed" >&2
[ -z "$failed" ] || [ -z "${files:-}" ] || printf 'tests: their files are in %s\n' "$files" >&2
exit $worst
