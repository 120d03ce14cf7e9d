#!/usr/bin/env bash
# Regenerates the lock files from pyproject.toml: versions and hashes for every Python and platform
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

# The Spark image holds the image of the lab, so only what Spark adds is in its lock.
compile --extra setup --extra spark --constraint requirements-test.lock \
  --output-file build/spark.lock ${UPGRADE:+--upgrade}
{
  printf '# What the Spark image adds to requirements.lock, written by:\n#    make lock\n'
  awk '/^[a-zA-Z]/ { wanted = FNR != NR && !($1 in has); if (FNR == NR) has[$1] }
    FNR != NR && wanted' requirements.lock build/spark.lock
} >docker/requirements-spark.lock
