"""`windtunnel matrix`: every publisher against every subscriber, and a page of all cells."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.runs.ci_files import ci_options, write_ci_files

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.suite.matrix import MatrixResult

SUITE = "matrix"
"""The folder of scenarios that is run when none is named."""


def _names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """Names with commas between them."""
    names = tuple(each.strip() for each in value.split(",") if each.strip())
    if not names:
        raise click.BadParameter("expected at least one peer")
    return names


@click.command(short_help="Make runs of every publisher against every subscriber, and a page.")
@click.argument("scenario", nargs=-1, shell_complete=scenarios.complete)
@click.option(
    "--publishers",
    callback=_names,
    metavar="PEER,...",
    default="ours,pyaeron",
    help="Drivers on the publisher's host.  [default: ours,pyaeron]",
)
@click.option(
    "--subscribers",
    callback=_names,
    metavar="PEER,...",
    default="ours,pyaeron",
    help="Drivers on the subscriber's host.  [default: ours,pyaeron]",
)
@click.option(
    "--fidelity",
    type=click.Choice(["netns", "compose"]),
    help="Namespaces or containers as hosts.  [default: compose if a Docker engine answers]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of the first run of a cell.  [default: the scenario's own]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="How many runs each cell has, with consecutive seeds.  [default: the scenario's own]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    help="How many runs are made at once.  [default: half of the processors]",
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
    help="Where the matrix folder is made.  [default: runs]",
)
@click.option("--json", "as_json", is_flag=True, help="The whole matrix as one JSON document.")
@ci_options
def matrix(
    scenario: tuple[str, ...],
    publishers: tuple[str, ...],
    subscribers: tuple[str, ...],
    fidelity: str | None,
    seed: int | None,
    seeds: int | None,
    jobs: int | None,
    payload: Path | None,
    out: Path,
    as_json: bool,
    junit: Path | None,
    markdown: Path | None,
) -> int:
    """Make runs of every publisher against every subscriber under SCENARIO..., judge them, and
    write a page with a cell for each.

    A PEER is ours, pyaeron (the real C driver in the Python package of that name), java (out of
    the jar in $AERON_ALL_JAR), or aeronmd:/path/to/aeronmd. One that this machine cannot start is
    UNSUPPORTED. A SCENARIO is a name from `windtunnel list`, a folder of them, or a YAML file;
    without any, the folder `matrix`. The exit code is the worst verdict's.

    \b
      windtunnel matrix --seeds 5
      windtunnel matrix loss --publishers ours,pyaeron,java --subscribers ours
      windtunnel matrix --publishers aeronmd:build/aeronmd --subscribers pyaeron --junit out.xml
    """
    files = scenarios.find_all(scenario or (SUITE,))

    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.machine import default_fidelity
    from windtunnel.harness.cli.render.matrix_display import MatrixDisplay
    from windtunnel.harness.orchestrate.suite import pool
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.suite.matrix import Question, run_matrix

    chosen = fidelity or default_fidelity()
    with one_line():
        if chosen == "netns":
            privileges.acquire()
        question = Question(
            scenarios=files,
            publishers=publishers,
            subscribers=subscribers,
            fidelity="compose" if chosen == "compose" else "netns",
            seed=seed,
            seeds=seeds,
            payload_file=payload,
            out=out,
            jobs=jobs or pool.jobs_by_default(),
        )
        with MatrixDisplay(lines_on_stderr=as_json) as display:
            result = run_matrix(question, display.on_event, display.on_cell)
        _tell(result, as_json, junit, markdown)
    return result.document.exit_code or exit_code.OK


def _tell(result: "MatrixResult", as_json: bool, junit: Path | None, markdown: Path | None) -> None:
    from windtunnel.reports.matrix_page import write_matrix_page
    from windtunnel.reports.outcomes import of_matrix

    write_ci_files(of_matrix(result.matrix_dir, result.document), junit, markdown)
    if as_json:
        click.echo(json.dumps(result.document.as_document()))
    try:
        click.echo(f"page: {write_matrix_page(result.matrix_dir)}", err=as_json)
    except OSError as error:
        click.echo(f"windtunnel: the page could not be written: {error}", err=True)
    if result.document.exit_code == exit_code.INTERRUPTED:
        click.echo(f"windtunnel: interrupted; what there is lies in {result.matrix_dir}", err=True)
