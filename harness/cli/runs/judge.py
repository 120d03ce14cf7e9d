"""`windtunnel judge`: judge stored runs again; needs nothing but the run folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from windtunnel.harness.cli import exit_code

if TYPE_CHECKING:
    from windtunnel.harness.verdict.judge import Verdict


@click.command(short_help="Judge stored runs again: offline, same evidence, same verdict.")
@click.argument(
    "run_dirs",
    nargs=-1,
    required=True,
    metavar="RUN_DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--json", "as_json", is_flag=True, help="One whole verdict a line, as JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Every gate and check, not only the bad ones.")
def judge(run_dirs: tuple[Path, ...], as_json: bool, verbose: bool) -> int:
    """Judge stored runs again: offline, same evidence, same verdict.

    RUN_DIR is a run folder, or a suite folder, which stands for all of its runs. Writes
    verdict.json and exits with the worst verdict's code.
    """
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.verdict.judge import judge as judge_run
    from windtunnel.harness.verdict.core.outcome import exit_code as code_of
    from windtunnel.harness.verdict.core.outcome import merge

    outcomes = []
    with one_line():
        for run_dir in _runs(run_dirs):
            verdict = judge_run(run_dir)
            outcomes.append(verdict.outcome)
            if as_json:
                click.echo(json.dumps({"run_dir": str(run_dir), **verdict.as_document()}))
            else:
                _tell(run_dir, verdict, verbose)
    return code_of(merge(outcomes)) if outcomes else exit_code.INCONCLUSIVE


def _runs(folders: tuple[Path, ...]) -> list[Path]:
    """The run folders meant: a suite stands for its runs, anything else for itself."""
    from windtunnel.harness.artifact.regular_file import untrusted_folder
    from windtunnel.harness.artifact.run_dir import SuiteDir

    runs = []
    for folder in map(untrusted_folder, folders):
        inside = [run.path for run in SuiteDir(folder).runs()]
        runs += inside or [folder]
    return runs


def _tell(run_dir: Path, verdict: "Verdict", verbose: bool) -> None:
    from windtunnel.harness.cli.render.verdict_text import finding_line, run_line

    name = verdict.scenario or run_dir.name
    click.echo(run_line(str(verdict.outcome), name, verdict.seed, verdict.reason, None))
    for finding in (*verdict.gates, *verdict.checks):
        if verbose or str(finding.outcome) != "PASS" or finding.difference:
            about = f"{finding.about}: " if finding.about else ""
            click.echo(finding_line(str(finding.outcome), finding.name, about + finding.text))
