"""`windtunnel matrix`: runs every publishing driver against every subscribing driver, and writes an
HTML table.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.options import SEED, SEEDS, out_option, payload_option
from windtunnel.harness.cli.runs.ci_files import ci_options, write_ci_files

if TYPE_CHECKING:
    from windtunnel.harness.orchestrate.suite.matrix import MatrixResult

SUITE = "matrix"
"""The scenario folder that `windtunnel matrix` runs by default."""


def _names(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """Split a comma-separated list of names (click callback)."""
    names = tuple(each.strip() for each in value.split(",") if each.strip())
    if not names:
        raise click.BadParameter(f"expected at least one peer, found {value!r}")
    return names


@click.command(short_help="Run every publisher against every subscriber, and write an HTML table.")
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
    help="Use network namespaces or containers.  "
    "[default: compose if a Docker engine responds, else netns]",
)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of the first run in each cell.  [default: from the scenario]",
)
@click.option(
    "--seeds",
    type=SEEDS,
    help="Number of runs in each cell, with consecutive seeds.  [default: from the scenario]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=64),
    help="Number of parallel runs.  [default: half of the processors]",
)
@payload_option
@out_option("Parent folder of the matrix folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the matrix as one JSON document.")
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
    """Run every publisher against every subscriber in each SCENARIO, and write an HTML table.

    A PEER is ours, pyaeron (the Aeron C driver in the Python package of that name), java (from the
    jar in $AERON_ALL_JAR), aeronmd:/path/to/aeronmd, or image:NAME (a container image, with
    --fidelity compose). If this machine cannot start a peer, the outcome of its cells is
    UNSUPPORTED. A SCENARIO is a name from `windtunnel list`, a YAML file, or a folder, as
    for `windtunnel run`; the default is the folder `matrix`. The exit code is that of the worst
    verdict.

    \b
      windtunnel matrix --seeds 5
      windtunnel matrix loss --publishers ours,pyaeron,java --subscribers ours
      windtunnel matrix --publishers aeronmd:build/aeronmd --subscribers pyaeron --junit out.xml
    """
    files = scenarios.find_all(scenario or (SUITE,))

    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.machine import default_fidelity
    from windtunnel.harness.cli.render.matrix_display import MatrixDisplay
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.scenario_file import require_runnable
    from windtunnel.harness.orchestrate.suite import pool
    from windtunnel.harness.orchestrate.suite.matrix import MatrixSpec, run_matrix

    chosen_fidelity = fidelity or default_fidelity()
    with one_line():
        require_runnable(files)
        if chosen_fidelity == "netns":
            privileges.acquire()
        question = MatrixSpec(
            scenarios=files,
            publishers=publishers,
            subscribers=subscribers,
            fidelity="compose" if chosen_fidelity == "compose" else "netns",
            seed=seed,
            seeds=seeds,
            payload_file=payload,
            out=out,
            jobs=jobs or pool.default_jobs(),
        )
        with MatrixDisplay(lines_on_stderr=as_json) as display:
            result = run_matrix(question, display.on_event, display.on_cell)
        _print_result(result, as_json, junit, markdown)
    return result.document.exit_code or exit_code.OK


def _print_result(
    result: "MatrixResult", as_json: bool, junit: Path | None, markdown: Path | None
) -> None:
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
        text = f"interrupted; partial results are in {result.matrix_dir}"
        click.echo(f"windtunnel: {text}", err=True)
