#!/usr/bin/env bash
# Builds two wheels into build/wheels:
#
#   windtunnel           the project, without machine code
#   windtunnel-kernels   its compiled kernels for this Python, and for each level of x86-64 that
#                        this machine can execute
#
# An environment with both compiles no kernels. An environment whose Python, numba or processor does
# not match compiles its own; `windtunnel doctor` reports which of the two applies.
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=build/wheels
tree=build/kernel-wheel
package=$tree/windtunnel_kernels
python=$PWD/.venv/bin/python
version=$("$python" -c 'from importlib.metadata import version; print(version("windtunnel"))')

wheel() {
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --no-index --wheel-dir "$wheels" "$1"
}

rm -rf "$wheels" "$tree"
mkdir -p "$wheels" "$package"
wheel .

levels=$("$python" -c 'from windtunnel.driver.kernels import processor
print(*processor.levels())')
for level in $levels; do
  printf 'kernels: compiling for %s\n' "$level" >&2
  NUMBA_CPU_NAME=$level NUMBA_CPU_FEATURES='' WINDTUNNEL_KERNEL_CACHE=$PWD/$package .ci/kernels.sh
done

rm -f "$package"/summaries-*.json
printf '"""Compiled kernels of Windtunnel %s."""\n' "$version" >"$package/__init__.py"
cat >"$tree/setup.py" <<PY
from setuptools import Distribution, setup


class Platform(Distribution):
    def has_ext_modules(self):
        return True


setup(
    name="windtunnel-kernels",
    version="$version",
    description="Compiled kernels of Windtunnel",
    license="Apache-2.0",
    packages=["windtunnel_kernels"],
    package_data={"windtunnel_kernels": ["*/*.image"]},
    install_requires=["windtunnel==$version"],
    distclass=Platform,
)
PY
wheel "./$tree"
ls -l "$wheels" >&2
