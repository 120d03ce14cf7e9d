#!/usr/bin/env bash
# Builds the documentation as static pages: build/site/index.html. Any warning is an error.
#
# The generated reference must be current. mkdocs has an environment of its own, because nothing
# else needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=build/docs-environment
.venv/bin/python -m tests.docs.reference --check
wanted=$(.venv/bin/python -c 'import tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["docs"], sep="\n")')
if [ "$(cat $tool/wanted 2>/dev/null)" != "$wanted" ]; then
  rm -rf $tool
  .venv/bin/python -m venv $tool
  $tool/bin/pip install --quiet --disable-pip-version-check -r <(printf '%s\n' "$wanted")
  printf '%s\n' "$wanted" >$tool/wanted
fi
NO_MKDOCS_2_WARNING=1 $tool/bin/mkdocs build --config-file .ci/mkdocs.yml --quiet --strict --clean
printf 'docs: build/site/index.html\n' >&2
