"""The layout of suite and matrix folders. No other module composes paths within them.

runs/matrix-<suite-id>/        matrix.html  matrix.json  a suite folder for each pair
runs/<suite-id>/               report.html  suite.json
  <scenario with / as ->-s<seed>/   see `run_dir`
"""

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from windtunnel.harness.artifact.run_dir import RunDir


def new_suite_id(now_utc: datetime) -> str:
    """Return a new suite id: the UTC time, so that ids sort by creation time, and four random hex
    digits.
    """
    return f"{now_utc:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def run_name(scenario: str, seed: int) -> str:
    """Return the run folder name for one scenario and one seed."""
    return f"{scenario.replace('/', '-')}-s{seed}"


@dataclass(frozen=True)
class SuiteDir:
    """The folder of one suite, with its runs and their report."""

    path: Path

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def document(self) -> Path:
        return self.path / "suite.json"

    def run(self, scenario: str, seed: int) -> RunDir:
        """Return the folder of one run. The folder need not exist."""
        return RunDir(self.path / run_name(scenario, seed))

    def runs(self) -> list[RunDir]:
        """Return the folders of all runs that have a manifest, sorted by name."""
        return [RunDir(found.parent) for found in sorted(self.path.glob("*/run.json"))]


@dataclass(frozen=True)
class MatrixDir:
    """The folder of one matrix run, with a suite for each pair of drivers and a page of all
    results.
    """

    path: Path

    @property
    def page(self) -> Path:
        return self.path / "matrix.html"

    @property
    def document(self) -> Path:
        return self.path / "matrix.json"

    def suite(self, name: str) -> SuiteDir:
        return SuiteDir(self.path / name)
