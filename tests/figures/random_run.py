"""Runs a random scenario, and compares every analysis of its captures with its account."""

import json
from pathlib import Path
from typing import Any

from tests.figures.account import read_account
from tests.figures.comparison import compare, compare_text
from tests.figures.random_scenario import text_of
from tests.figures.result_comparison import compare_results
from tests.sim.simulated import run
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.dissect.capture.capture_stream import CELL_LENGTH_MIN
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.options import AnalysisOptions
from windtunnel.reports.analysis.output.summary import summary_lines


class SmallCells(AnalysisOptions):
    """Options with which short captures consist of several cells, as long ones do by default."""

    @property
    def read_settings(self) -> dict[str, Any]:
        """Return the keyword arguments for `ReadSettings`."""
        return super().read_settings | {"cell_length": CELL_LENGTH_MIN}


def run_document(document: dict[str, Any], folder: Path) -> RunDir:
    """Run a scenario and return its folder."""
    path = folder / "random.yaml"
    path.write_text(text_of(document))
    fidelity = document["fidelity"][0]
    result = run(path, folder, fidelity)
    # In a short stream a rule may apply to fewer frames than its share: the evidence is complete.
    is_rare = result.outcome == "INCONCLUSIVE" and result.reason.startswith("faults_happened")
    assert result.outcome == "PASS" or is_rare, f"{result.outcome}: {result.reason}"
    return RunDir(result.run_dir)


def vantage_points(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the selections of hosts whose captures are analysed together."""
    hosts = document["network"]["hosts"]
    alone: list[tuple[str, ...]] = [(each,) for each in hosts]
    return [*alone, *([tuple(hosts[:2])] if len(hosts) > 2 else []), tuple(hosts)]


def differences_of(document: dict[str, Any], folder: Path, spark: Any = None) -> list[str]:
    """Run a scenario and return the figures that differ, for each choice of captures."""
    created = run_document(document, folder)
    account = read_account(created.path)
    found = compare_results(json.loads(created.verdict.read_text())["results"], account)
    for hosts in vantage_points(document):
        paths = [f"{host}={created.capture(host)}" for host in hosts]
        tables = analyze(paths, options=SmallCells(messages=True), spark=spark)
        rows = {name: table.to_pylist() for name, table in tables.named().items()}
        differences = [*tables.problems, *compare(rows, account)]
        differences += compare_text(summary_lines(tables), account)
        found += [f"{'+'.join(hosts)}: {each}" for each in differences]
    return found
