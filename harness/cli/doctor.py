"""`windtunnel doctor`: checks prerequisites and shows the fallback for each missing one."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.options import out_option


@click.command(short_help="Check prerequisites and show fallbacks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@out_option("Folder for runs. Its free disk space is checked.")
def doctor(as_json: bool, out: Path) -> int:
    """Check the prerequisites of this machine and show the fallback for each missing one.

    Exits with 0 if at least one fidelity level can run here, else with 2.
    """
    from windtunnel.harness.cli.machine import SIMULATION_NEEDS, facts, possible_fidelities

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
            click.echo(f"    {'':<{width}}  fallback: {fact.instead}")
    if not fidelities:
        needs = ", ".join(SIMULATION_NEEDS)
        click.secho(
            "No run is possible here: there are neither containers nor network namespaces, "
            f"and simulation needs {needs}.",
            fg="red",
        )
        return exit_code.INCONCLUSIVE
    click.echo(f"\n{_summary(fidelities)}")
    return exit_code.OK


def _summary(fidelities: list[str]) -> str:
    if fidelities == ["sim"]:
        return (
            "Only simulation is possible here: use --fidelity sim. "
            "There are neither containers nor network namespaces."
        )
    default, *others = fidelities
    return f"The default fidelity is {default}; {' and '.join(others)} can be selected as well."
