#!/usr/bin/env bash
# Compiles every kernel of the project into the kernel cache, with two processes at a time. Kernels
# that the cache has already are only loaded.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build
compile() {
  local log=build/kernels-$1.log
  shift
  .venv/bin/python -m "$@" >"$log" 2>&1 && return
  printf 'failed, see %s: %s\n' "$log" "$*" >&2
  return 1
}

{
  compile driver windtunnel.driver.warm_up
  compile harness windtunnel.harness.warm_up
  compile reports windtunnel.reports.analysis.warm_up
} &
others=$!
compile simulator windtunnel.harness.simulator warm-up
# Worlds of more than two hosts have kernels of their own.
runs=$(mktemp -d)
compile hosts windtunnel.harness run many/multicast-one-lossy --fidelity sim --out "$runs" || true
rm -rf "$runs"
wait $others
