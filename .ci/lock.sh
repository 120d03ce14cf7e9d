#!/usr/bin/env bash
# Writes the lock files anew from pyproject.toml: versions and hashes for every Python and platform
# that we support in one file each, no addresses. Needs the network; run by `make lock`.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=build/lock-environment
[ -x $tool/bin/uv ] || { .venv/bin/python -m venv $tool && $tool/bin/pip install --quiet uv; }

compile() {
  $tool/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-annotate \
    --custom-compile-command "make lock" pyproject.toml "$@"
}

compile --extra setup --output-file requirements.lock ${UPGRADE:+--upgrade}
compile --extra setup --extra test --constraint requirements.lock \
  --output-file requirements-test.lock ${UPGRADE:+--upgrade}
