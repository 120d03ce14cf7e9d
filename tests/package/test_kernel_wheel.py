"""The pair of wheels, installed into an empty environment, runs a scenario and compiles nothing.

.ci/wheel.sh --> windtunnel, windtunnel-kernels --install--> environment with an empty kernel cache
"""

import os
import subprocess

import pytest

from tests.package.wheel_pair import build, install
from windtunnel.driver.kernels.sources import CACHE_VARIABLE

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The `bin` of a virtual environment with both wheels, and our dependencies on its path."""
    build()
    return install(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize("level", [None, "x86-64-v2"])
def test_the_pair_compiles_nothing(environment, level, tmp_path):
    """The level of an older processor is chosen by name, as numba's settings allow."""
    cache = tmp_path / "kernels"
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    variables[CACHE_VARIABLE] = str(cache)
    if level is not None:
        variables |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    argv = ("windtunnel", "run", "loss/reliable-2pct", "--fidelity", "sim", "--seed", "7")
    done = subprocess.run(
        [str(environment / argv[0]), *argv[1:]],
        cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(cache.rglob("*.image")) == []
