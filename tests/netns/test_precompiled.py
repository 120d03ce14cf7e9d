"""The processes of a lab need no kernels except those that are compiled before it starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.driver.kernels.sources import CACHE_VARIABLE
from windtunnel.harness.cli.scenarios import MAIN
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.full,  # about a minute of compilation
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]


def compiled(cache: Path) -> set[str]:
    return {path.relative_to(cache).as_posix() for path in cache.rglob("*.image")}


def test_the_main_scenarios_compile_nothing_more(tmp_path):
    cache = tmp_path / "kernels"
    environment = {**os.environ, CACHE_VARIABLE: str(cache)}
    precompile = "windtunnel.harness.orchestrate.precompile.precompile"
    subprocess.run([sys.executable, "-m", precompile], env=environment, check=True, timeout=500)
    before = compiled(cache)
    assert len(before) > 100
    run = [Path(sys.executable).with_name("windtunnel"), "run", *MAIN, "--fidelity", "netns"]
    subprocess.run(run, env=environment, cwd=tmp_path, check=True, timeout=500)
    assert compiled(cache) - before == set()
