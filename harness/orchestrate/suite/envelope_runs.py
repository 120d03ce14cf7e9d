"""Measures the envelopes of scenarios: runs each one with sound drivers, on virtual time, with many
seeds, and writes the range of each figure.

    scenarios x drivers x seeds --run_suite--> verdict.json --figures_of--> bands.json

Only runs count that passed every check but the comparison with the envelope itself. Their folders
are deleted at once. The others are kept and reported.
"""

from __future__ import annotations

import shutil
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from windtunnel.harness.artifact.documents import Document, read_document, write_document
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.fidelity import SIM
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.orchestrate.suite.suite import RunSummary
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.checks.envelope.bands import (
    SCHEMA,
    case_digest,
    is_steady,
    stream_key,
)
from windtunnel.harness.verdict.checks.envelope.figures import figures_of
from windtunnel.harness.verdict.checks.envelope.within_envelope import NAME

OnRound = Callable[[str, int, int, list[RunSummary]], None]
"""Called after the runs of all scenarios with one driver and one seed: with the driver, the seed,
the number of runs whose figures count, and the other ones."""
_Values = dict[str, dict[str, dict[str, list[float]]]]
"""Stream and host -> figure -> driver -> values."""


class EnvelopeRuns:
    """The figures of the runs so far."""

    def __init__(self, first_seed: int, seeds: int) -> None:
        self._first_seed, self._seeds = first_seed, seeds
        self._values: dict[str, _Values] = defaultdict(_streams)
        self._digests: dict[str, str] = {}
        self._versions: dict[str, dict[str, str]] = defaultdict(dict)

    def measure(
        self,
        files: Sequence[Path],
        drivers: Mapping[str, int],
        *,
        jobs: int,
        out: Path,
        on_round: OnRound,
    ) -> None:
        """Run all scenarios with each driver. `drivers` contains the number of seeds by the name
        of a peer. Raises ScenarioError or LabError if this is impossible.
        """
        for peer, seeds in drivers.items():
            for seed in range(self._first_seed, self._first_seed + seeds):
                result = run_suite(
                    files,
                    fidelity=SIM,
                    seed=seed,
                    seeds=1,
                    tested=peers.pair(peer, peer, SIM, out),
                    jobs=jobs,
                    out=out,
                )
                result.raise_if_cancelled()
                others = [each for each in result.runs if not self.add(each.run_dir)]
                on_round(peer, seed, len(result.runs) - len(others), others)

    def add(self, folder: Path) -> bool:
        """Add the figures of a run and delete its folder, or return False if it does not count.

        Of a scenario with host events or changes of links, there are no figures.
        """
        run_dir = RunDir(folder)
        manifest, verdict = Manifest.read(run_dir.manifest), read_document(run_dir.verdict)
        if manifest is None or verdict is None or not _counts(verdict):
            return False
        case = Case.read(run_dir.case)
        if is_steady(case):
            self._add_figures(case, manifest, verdict)
        shutil.rmtree(folder)
        return True

    def _add_figures(self, case: Case, manifest: Manifest, verdict: Document) -> None:
        subject = next(iter(manifest.subjects.values()))
        driver = subject.driver
        self._versions[case.name][driver] = subject.version
        self._digests[case.name] = case_digest(case)
        streams = self._values[case.name]
        for each in verdict["results"]:
            row = ResultRow(**each)
            figures = streams[stream_key(row.traffic, row.to_host)]
            for name, value in figures_of(row).items():
                figures[name][driver].append(value)

    def write(self, file: Path) -> int:
        """Write the envelopes of the scenarios that have figures to a file, which keeps those of
        other scenarios. Returns their number. Raises DocumentError if the file is damaged.
        """
        measured = {
            name: {
                "digest": self._digests[name],
                "first_seed": self._first_seed,
                "seeds": self._seeds,
                "drivers": dict(sorted(self._versions[name].items())),
                "streams": _distributions(streams),
            }
            for name, streams in self._values.items()
        }
        kept = (read_document(file, SCHEMA) or {"scenarios": {}})["scenarios"]
        scenarios = dict(sorted({**kept, **measured}.items()))
        write_document(file, {"schema": SCHEMA, "scenarios": scenarios})
        return len(measured)


def _streams() -> _Values:
    return defaultdict(lambda: defaultdict(lambda: defaultdict(list)))


def _counts(verdict: Document) -> bool:
    """Return whether a run passed every check but the comparison with the envelope."""
    if verdict["outcome"] == "PASS":
        return True
    failed = {each["name"] for each in verdict["checks"] if each["outcome"] != "PASS"}
    return verdict["outcome"] == "FAIL" and failed == {NAME}


def _distributions(streams: _Values) -> dict[str, Any]:
    return {
        stream: {
            name: {
                driver: [
                    len(values),
                    *_rounded(min(values), statistics.median(values), max(values)),
                ]
                for driver, values in sorted(drivers.items())
            }
            for name, drivers in sorted(figures.items())
        }
        for stream, figures in sorted(streams.items())
    }


def _rounded(*values: float) -> list[float]:
    """Return values with five significant digits, which is finer than any band."""
    return [float(f"{each:.5g}") for each in values]
