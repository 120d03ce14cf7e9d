"""`windtunnel judge`: judges stored runs again, using only their run folders."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.runs.run_folders import run_dirs_argument, run_folders

if TYPE_CHECKING:
    from windtunnel.harness.verdict.judge import Verdict


@click.command(short_help="Judge stored runs again, offline.")
@run_dirs_argument
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per verdict.")
@click.option(
    "--verbose", "-v", is_flag=True, help="Print every gate and check, not only the failed ones."
)
def judge(run_dirs: tuple[Path, ...], as_json: bool, verbose: bool) -> int:
    """Judge stored runs again, offline. Equal evidence always leads to the same verdict.

    RUN_DIR is a run folder, or a suite folder with several runs. Writes verdict.json into each run
    folder. The exit code is that of the worst verdict. If any folder is neither a run folder nor a
    suite folder, no run is judged, nothing is written, and the exit code is 2.
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.verdict.core.outcome import exit_code as code_of
    from windtunnel.harness.verdict.core.outcome import merge
    from windtunnel.harness.verdict.judge import judge as judge_run

    outcomes = []
    with one_line():
        for run_dir in run_folders(run_dirs):
            verdict = judge_run(run_dir)
            outcomes.append(verdict.outcome)
            if as_json:
                click.echo(json.dumps({"run_dir": str(run_dir), **verdict.as_document()}))
            else:
                _print_verdict(run_dir, verdict, verbose)
    return code_of(merge(outcomes)) if outcomes else exit_code.INCONCLUSIVE


def _print_verdict(run_dir: Path, verdict: "Verdict", verbose: bool) -> None:
    from windtunnel.harness.cli.render.results_table import observation_lines, result_lines
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.harness.cli.render.verdict_text import finding_line, run_line

    name = verdict.scenario or run_dir.name
    click.echo(run_line(str(verdict.outcome), name, verdict.seed, verdict.reason, None))
    for line in (*result_lines(verdict.results), *observation_lines(verdict.observed)):
        echo(line)
    for finding in (*verdict.gates, *verdict.checks):
        if verbose or str(finding.outcome) != "PASS" or finding.difference:
            about = f"{finding.about}: " if finding.about else ""
            click.echo(finding_line(str(finding.outcome), finding.name, about + finding.text))
