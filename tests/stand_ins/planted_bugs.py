"""Examples with an injected bug are run by their own tests, and the verdict must report it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.suite.runner import run_suite

LIMIT_S = 290
EXECUTED = 'str(tmp_path / "executed")'
"""Where the tests of the examples let their service keep what it has executed."""


@dataclass(frozen=True)
class PlantedBug:
    """A bug that is injected into the programs of an example."""

    test: str
    """The test of the example that finds it."""
    changes: dict[str, str]
    """What is replaced in the programs."""
    stream: str
    text: str
    """The text of the verdict about the stream."""


def planted(example: Path, bug: PlantedBug, folder: Path) -> Path:
    """Return a copy of an example whose programs have a bug."""
    copy = folder / "planted"
    shutil.copytree(example, copy, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    for old, new in bug.changes.items():
        programs = [each for each in copy.iterdir() if each.suffix in (".py", ".java")]
        (file,) = [each for each in programs if old in each.read_text()]
        file.write_text(file.read_text().replace(old, new, 1))
    return copy


def change_test(copy: Path, changes: dict[str, str]) -> None:
    """Replace texts in the tests of a copied example, each of which must occur."""
    file = copy / "test_echo.py"
    text = file.read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)


def run_example(
    folder: Path, out: Path, *arguments: str, limit_s: int = LIMIT_S, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run an example's own tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--windtunnel-out", str(out), *arguments, str(folder)]
    env = {**os.environ, **variables}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=limit_s, check=False, env=env
    )


def assert_passes_in_containers(file: Path, out: Path) -> None:
    """Assert that the scenario of an unchanged example passes."""
    result = run_suite([file], out=out, seeds=1, fidelity="compose", allow_commands=True)
    verdict = read_verdict(RunDir(result.runs[0].run_dir).verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]


def assert_named(done: subprocess.CompletedProcess[str], out: Path, bug: PlantedBug) -> None:
    """Assert that the verdict names the stream and the position at which a bug shows."""
    assert done.returncode == 1, done.stdout
    (file,) = out.glob("*/*/verdict.json")
    verdict = read_verdict(RunDir(file.parent).verdict)
    assert verdict is not None
    found = next(
        each
        for each in verdict["checks"]
        if each["name"] == "reported_once_in_order" and each["outcome"] != "PASS"
    )
    assert found["about"] == bug.stream
    assert found["position"] >= 0
    assert str(found["position"]) in found["text"]
    assert bug.text in found["text"]
    if "misses" in found["text"] and found["outcome"] == "INCONCLUSIVE":
        return  # An overloaded machine excuses a message that may only be late.
    assert verdict["outcome"] == "FAIL", verdict["reason"]
    assert verdict["at_fault"] == "application"
    assert f"{bug.stream}): {found['text']}" in verdict["reason"]
