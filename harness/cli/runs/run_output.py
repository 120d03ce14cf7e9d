"""Prints the result of a suite, and writes its report and summaries."""

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code, failure
from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import outcome_mark, run_line
from windtunnel.harness.cli.runs.ci_files import write_ci_files

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.suite import ScenarioResult
    from windtunnel.harness.orchestrate.suite.runner import SuiteResult


def write_report(suite_dir: Path) -> Path | None:
    """Write the suite's report and return its path. If this fails, print an error on stderr and
    return None.
    """
    from windtunnel.reports.page import write_suite_report

    try:
        return write_suite_report(suite_dir)
    except OSError as error:
        click.echo(f"windtunnel: the report could not be written: {error}", err=True)
        return None


def write_files(suite_dir: Path, junit: Path | None, markdown: Path | None) -> Path | None:
    """Write the report and the files for CI. Returns the report's path, as `write_report` does."""
    from windtunnel.harness.artifact.run.suite import Suite
    from windtunnel.harness.artifact.suite_dir import SuiteDir
    from windtunnel.reports.outcomes import of_suite

    report = write_report(suite_dir)
    suite = Suite.read(SuiteDir(suite_dir).document)
    if suite is not None and (junit or markdown):
        write_ci_files(of_suite(suite_dir, suite), junit, markdown)
    return report


def suite_lines(scenarios: Sequence["ScenarioResult"], remarks: Sequence[str]) -> list[str]:
    """Return the summary lines of a suite: one for each scenario that has several runs or known
    failures, and one for each remark.
    """
    lines = []
    for each in scenarios:
        if each.runs > 1 or each.limit is not None or each.known:
            text = f"{each.scenario}  {each.text}"
            lines.append(f"{outcome_mark(each.outcome)}  {printable(text)}")
    return [*lines, *(click.style(f"NOTE: {printable(remark)}", bold=True) for remark in remarks)]


def repeat_commands(result: "SuiteResult") -> list[str]:
    """Return the stored commands that repeat the failed runs."""
    from windtunnel.harness.artifact.run_dir import RunDir

    lines = []
    for each in result.runs:
        if each.outcome == "FAIL":
            with suppress(OSError, IndexError):
                lines.append(RunDir(each.run_dir).repro.read_text().splitlines()[0])
    return lines


def _result_texts(run_dir: Path, is_named: bool) -> list[str]:
    """Return the lines with a run's figures and what its applications saw, if it was judged."""
    from windtunnel.harness.artifact.documents import DocumentError
    from windtunnel.harness.artifact.run.verdict import (
        observations_of,
        read_verdict,
        result_rows_of,
    )
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.cli.render.results_table import observation_lines, result_lines

    try:
        verdict = read_verdict(RunDir(run_dir).verdict) or {}
    except DocumentError as error:
        echo(f"windtunnel: {failure.document_text(error)}", err=True)
        return []
    lines = [*result_lines(result_rows_of(verdict)), *observation_lines(observations_of(verdict))]
    return [f"  {run_dir.name}", *lines] if lines and is_named else lines


def _scrolled_verdicts(result: "SuiteResult", line_count: int) -> list[str]:
    """Return the verdict lines again if the lines after them have scrolled them off the terminal,
    unless there are more runs than half of the terminal's lines.
    """
    height = shutil.get_terminal_size().lines
    is_short = line_count + len(result.runs) < height or len(result.runs) > height // 2
    if is_short or not _is_terminal():
        return []
    runs = result.runs
    return [run_line(each.outcome, each.scenario, each.seed, each.reason, None) for each in runs]


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def print_suite(result: "SuiteResult", report: Path | None, as_json: bool) -> None:
    """Print the summary of a suite after all its runs."""
    if as_json:
        document = {
            "kind": "suite",
            "exit_code": result.exit_code,
            "suite_dir": str(result.suite_dir),
            "report": None if report is None else str(report),
            "runs": [str(each.run_dir) for each in result.runs],
            "scenarios": [asdict(each) for each in result.scenarios],
            "remarks": result.remarks,
            "again": repeat_commands(result),
        }
        click.echo(json.dumps(document))
    else:
        lines = [
            line
            for each in result.runs
            for line in _result_texts(each.run_dir, len(result.runs) > 1)
        ]
        for line in lines:
            echo(line)
        for line in suite_lines(result.scenarios, result.remarks):
            click.echo(line)
        for command in repeat_commands(result):
            echo(f"reproduce: {command}")
        if report is not None:
            echo(f"report: {report}")
        for line in _scrolled_verdicts(result, len(lines) + 2):
            click.echo(line)
    if result.exit_code == exit_code.INTERRUPTED:
        text = f"interrupted; partial results are in {result.suite_dir}"
        click.echo(f"windtunnel: {text}", err=True)
