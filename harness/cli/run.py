"""`windtunnel run`: make runs, show them, judge them, write the report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import exit_code, scenarios

if TYPE_CHECKING:
    from harness.orchestrate.runner import SuiteResult
    from harness.scenario.model import Backend


@click.command(short_help="Make runs, judge them, and write an HTML report.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose"]),
    help="Namespaces or containers as hosts.  [default: compose if a Docker engine answers]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of the first run.  [default: the scenario's own]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="How many runs of each scenario, with consecutive seeds.  [default: the scenario's own]",
)
@click.option(
    "--payload",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File whose bytes are sent.  [default: an archive of Python's standard library]",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Where the suite folder is made.  [default: runs]",
)
@click.option(
    "--sabotage",
    metavar="NAME",
    help="Make the subject misbehave on purpose, to see that the judge notices.",
)
@click.option(
    "--backend",
    type=click.Choice(["relay", "netem"]),
    help="Who delivers the weather of scenarios that have any.  [default: the scenario's own]",
)
@click.option(
    "--kernel",
    type=click.Choice(["host", "uml"]),
    default="host",
    help="This machine's kernel, or User Mode Linux, which has netem.  [default: host]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="JSON lines on stdout: one a run, one at the end."
)
def run(
    scenario: tuple[str, ...],
    fidelity: str | None,
    seed: int | None,
    seeds: int | None,
    payload: Path | None,
    out: Path,
    sabotage: str | None,
    backend: "Backend | None",
    kernel: str,
    as_json: bool,
) -> int:
    """Make runs of SCENARIO..., judge them, and write an HTML report.

    A SCENARIO is a name from `windtunnel list` or a YAML file; without any, the three main ones
    are run. Prints one line a run with its verdict and the reason. The exit code is the worst
    verdict's.

    \b
      windtunnel run loss/reliable-2pct --seed 7
      windtunnel run reorder/reliable-swap-and-hold --seeds 10 --fidelity netns
      windtunnel run my-scenario.yaml --payload capture.tar --json | jq .outcome
    """
    files = scenarios.find_all(scenario)

    from harness.cli.display import choose
    from harness.cli.failure import one_line
    from harness.cli.machine import default_fidelity
    from harness.orchestrate import privileges, subject
    from harness.orchestrate.runner import run_suite

    if sabotage is not None and sabotage not in subject.SABOTAGES:
        raise click.UsageError(f"--sabotage is one of {', '.join(subject.SABOTAGES)}")
    if kernel == "uml":
        from harness.cli import in_kernel

        options: dict[str, object] = {"seed": seed, "seeds": seeds, "payload": payload, "out": out}
        switches = ("--json",) if as_json else ()
        options |= {"fidelity": fidelity or "netns", "sabotage": sabotage, "backend": backend}
        return in_kernel.run(files, options, switches)
    chosen = fidelity or default_fidelity()
    with one_line():
        if chosen == "netns":
            privileges.acquire()
        with choose(as_json) as display:
            result = run_suite(
                files,
                fidelity="compose" if chosen == "compose" else "netns",
                seed=seed,
                seeds=seeds,
                payload_file=payload,
                out=out,
                on_event=display.on_event,
                sabotage=sabotage,
                backend=backend,
            )
        report = write_report(result.suite_dir)
    _tell(result, report, as_json)
    return result.exit_code


def write_report(suite_dir: Path) -> Path | None:
    """The suite's report; None, and a line on stderr, when it cannot be written."""
    from reports.page import write_suite_report

    try:
        return write_suite_report(suite_dir)
    except OSError as error:
        click.echo(f"windtunnel: the report could not be written: {error}", err=True)
        return None


def _tell(result: "SuiteResult", report: Path | None, as_json: bool) -> None:
    if as_json:
        document = {
            "kind": "suite",
            "exit_code": result.exit_code,
            "suite_dir": str(result.suite_dir),
            "report": None if report is None else str(report),
            "runs": [str(each.run_dir) for each in result.runs],
        }
        click.echo(json.dumps(document))
    elif report is not None:
        click.echo(f"report: {report}")
    if result.exit_code == exit_code.INTERRUPTED:
        click.echo(f"windtunnel: interrupted; what there is lies in {result.suite_dir}", err=True)
