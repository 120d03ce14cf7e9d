"""`windtunnel doctor`: what this machine has, and what will be used instead of what it lacks."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code


@click.command(short_help="Tell what this machine has, and what is used instead.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Where runs would be written.  [default: runs]",
)
def doctor(as_json: bool, out: Path) -> int:
    """Tell what this machine has, and what will be used instead of what it lacks.

    Exits 0 when at least one fidelity can run here, else 2.
    """
    from windtunnel.harness.cli.machine import facts, possible_fidelities

    found = facts(out)
    fidelities = possible_fidelities(found)
    if as_json:
        document = {"fidelities": fidelities, "facts": [asdict(fact) for fact in found]}
        click.echo(json.dumps(document, indent=1))
        return exit_code.OK if fidelities else exit_code.INCONCLUSIVE
    width = max(len(fact.name) for fact in found)
    for fact in found:
        mark = click.style("yes", fg="green") if fact.has else click.style("no ", fg="yellow")
        purpose = f"  [{fact.needed_for}]" if fact.needed_for else ""
        click.echo(f"{mark} {fact.name:<{width}}  {fact.detail}{click.style(purpose, dim=True)}")
        if not fact.has and fact.instead:
            click.echo(f"    {'':<{width}}  instead: {fact.instead}")
    if not fidelities:
        click.secho("No run is possible here: neither containers nor network namespaces.", fg="red")
        return exit_code.INCONCLUSIVE
    click.echo(
        f"\nRuns use {fidelities[0]}"
        + (f"; {fidelities[1]} also works." if fidelities[1:] else ".")
    )
    return exit_code.OK
