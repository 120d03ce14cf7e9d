"""The example of Aeron's samples passes; samples that this machine lacks are skipped by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archive.archives import why_no_java

pytestmark = [pytest.mark.netns, pytest.mark.peer, pytest.mark.timeout(300)]
pytest.importorskip("pyaeron")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "aeron-samples"


def run_example(out: Path, *arguments: str, **variables: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--windtunnel-out", str(out), *arguments, str(EXAMPLE)]
    env = {**os.environ, **variables}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=290, check=False, env=env
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_missing_samples_are_skipped_by_name(tmp_path: Path) -> None:
    output = run_example(tmp_path, AERON_ALL_JAR="", SAMPLES_BIN="")
    assert "20 skipped" in output
    assert "AERON_ALL_JAR names no jar" in output
    assert "SAMPLES_BIN names no folder" in output


@pytest.mark.full
@pytest.mark.skipif(bool(why_no_java()), reason=why_no_java() or "it runs")
def test_basic_publisher_passes_with_both_drivers(tmp_path: Path) -> None:
    output = run_example(tmp_path, "-k", "basic and 1-", SAMPLES_BIN="")
    assert "2 passed" in output
