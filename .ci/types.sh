#!/usr/bin/env bash
# Checks types. mypy finds packages by folders alone, so it is shown the folders of the top level
# below one named like the package; Python itself finds them by the build configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/types/windtunnel
for folder in driver harness reports; do
  ln -sfn "../../../$folder" "build/types/windtunnel/$folder"
done
MYPYPATH=build/types .venv/bin/mypy --explicit-package-bases \
  -p windtunnel.driver -p windtunnel.harness -p windtunnel.reports
