"""`windtunnel explain` and `windtunnel schema`: describe a scenario, and the scenario file format.

Neither command starts anything. `explain` rejects every file that `run` would reject.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code, scenarios
from windtunnel.harness.cli.options import SEED

if TYPE_CHECKING:
    from windtunnel.harness.scenario.loader import LoadedScenario
    from windtunnel.harness.scenario.resolved.case import Case

_EXAMPLE_ADDRESSES = tuple(f"192.0.2.{last}" for last in range(1, 9))
"""Addresses printed in place of those that a real run derives from its run id. These addresses are
reserved for documentation."""


@click.command(short_help="Describe a scenario with all defaults resolved.")
@click.argument("file", required=False, shell_complete=scenarios.complete)
@click.option(
    "--seed",
    type=SEED,
    help="Seed of the run to describe.  [default: the scenario's root seed]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the scenario with all defaults resolved, as JSON.",
)
@click.option(
    "--schema",
    "as_schema",
    is_flag=True,
    help="Print the JSON Schema of scenario files instead of a description.",
)
def explain(file: str | None, seed: int | None, as_json: bool, as_schema: bool) -> int:
    """Describe a scenario, given as a file or by name, with all defaults resolved.

    Prints the hosts, streams and fault rules, and an estimate of how many frames each rule affects.
    Validates the file as `run` does; errors are reported with file, line and column.
    """
    if as_schema:
        _print_schema()
        return exit_code.OK
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")

    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.cli.render.table import echo
    from windtunnel.harness.orchestrate.scenario_file import load_all_runnable
    from windtunnel.harness.scenario.explain.explain import explain as describe
    from windtunnel.harness.scenario.resolved.case import Payload
    from windtunnel.harness.scenario.resolved.resolution import resolve

    with one_line():
        found = scenarios.find(file)
        variants = load_all_runnable(found)
        loaded = variants[0].scenario
        case = resolve(
            loaded,
            seed=loaded.seeds.root if seed is None else seed,
            fidelity=loaded.fidelity[0],
            addresses=dict(zip(loaded.network.hosts, _EXAMPLE_ADDRESSES, strict=False)),
            payload=Payload(
                path="(chosen by `windtunnel run --payload`)", sha256="", length_bytes=0
            ),
        )
    if as_json:
        click.echo(json.dumps(json.loads(case.to_json()), indent=1))
    else:
        echo(describe(_with_directory(case, found.absolute().parent)))
        for line in sweep_lines(variants):
            echo(line)
    return exit_code.OK


def sweep_lines(variants: "Sequence[LoadedScenario]") -> list[str]:
    """Return the lines that list the variants of a sweep, of which the first was described."""
    if len(variants) < 2:
        return []
    lines = ["", f"sweep: {len(variants)} scenarios, of which this is the first"]
    for each in variants:
        values = ", ".join(f"{name} {text}" for name, text in each.settings.items())
        lines.append(f"  {each.scenario.name}  ({values})")
    return lines


def _with_directory(case: "Case", directory: Path) -> "Case":
    """Return the case with the folder of the scenario file in the commands and variables of its
    applications, as they are when a run starts them.
    """
    from windtunnel.harness.scenario.applications.placeholder import SCENARIO_DIRECTORY

    values = {SCENARIO_DIRECTORY: str(directory)}
    applications = tuple(each.filled_in(values) for each in case.applications)
    return case.model_copy(update={"applications": applications})


@click.command(short_help="Print the JSON Schema of scenario files.")
def schema() -> None:
    """Print the JSON Schema of scenario files, for editors and other tools.

    The schema describes keys, types and units. `windtunnel explain FILE` also checks references
    between sections, such as the names of hosts.
    """
    _print_schema()


def _print_schema() -> None:
    from windtunnel.harness.scenario.json_schema import json_schema

    click.echo(json.dumps(json_schema(), indent=1))
