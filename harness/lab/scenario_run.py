"""A run of a scenario in a process of its own: `windtunnel run`, with one seed.

A lab needs privileges, signal handlers and processes that the caller's process should not have.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.harness.lab.child_process import Finished, last_lines, run_command
from windtunnel.harness.lab.verdict import Verdict, read_verdict


class RunError(Exception):
    """Raised if a scenario could not be run."""


@dataclass(frozen=True)
class ScenarioRun:
    """A scenario with a seed, and how to run it."""

    file: Path
    scenario: str
    """Name of the scenario."""

    seed: int
    fidelity: str
    out: Path
    """The folder of all suites."""

    allow_commands: bool = False
    driver: str = "ours"
    """The media driver of all hosts."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """Values to set in the scenario, by name."""

    def execute(self) -> Verdict:
        """Run the scenario and return its verdict. Raises RunError if there is none."""
        return _verdict(run_command(self._command()))

    def _command(self) -> list[str]:
        argv = [sys.executable, "-m", "windtunnel.harness", "run", str(self.file), "--json"]
        argv += ["--fidelity", self.fidelity, "--seed", str(self.seed), "--seeds", "1"]
        argv += ["--out", str(self.out), "--publisher", self.driver, "--subscriber", self.driver]
        argv += [word for each in self.settings.items() for word in ("--set", "=".join(each))]
        return [*argv, "--allow-commands"] if self.allow_commands else argv


def _verdict(done: Finished) -> Verdict:
    documents = list(_documents(done.output))
    runs = [each for each in documents if each.get("kind") == "run"]
    suites = [each for each in documents if each.get("kind") == "suite"]
    if len(runs) != 1 or len(suites) != 1 or not suites[0]["runs"]:
        text = f"`windtunnel run` ended with exit code {done.code} and no verdict"
        raise RunError(f"{text}: {last_lines(done.errors)}")
    run, suite = runs[0], suites[0]
    folder = Path(suite["runs"][0])
    report = None if suite["report"] is None else Path(suite["report"])
    return read_verdict(folder, run["outcome"], run["reason"], report, _repeat(folder))


def _documents(output: str) -> Sequence[dict[str, Any]]:
    found = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict):
                found.append(document)
    return found


def _repeat(folder: Path) -> str:
    """Return the command that repeats a run, from its folder."""
    from windtunnel.harness.artifact.run_dir import RunDir

    try:
        lines = RunDir(folder).repro.read_text().splitlines()
    except OSError:
        return ""
    return shlex.join(shlex.split(lines[0])) if lines else ""
