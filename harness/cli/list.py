"""`windtunnel list`: the scenarios that come with Windtunnel."""

import json
import textwrap

import click

from windtunnel.harness.cli import scenarios
from windtunnel.harness.cli.render.table import printable


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document for machines.")
def list_scenarios(as_json: bool) -> None:
    """List the scenarios under scenarios/, each with its intent."""
    from windtunnel.harness.cli.failure import one_line
    from windtunnel.harness.scenario.loader import load_scenario

    rows = []
    for name in scenarios.names():
        with one_line():
            loaded = load_scenario(scenarios.find(name))
        rows.append(
            {
                "name": name,
                "about": " ".join(loaded.about.split()),
                "fidelity": list(loaded.fidelity),
                "main": name in scenarios.MAIN,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        mark = "  (main)" if row["main"] else ""
        click.echo(click.style(str(row["name"]), bold=True) + mark)
        about = printable(str(row["about"]))
        click.echo(textwrap.fill(about, 96, initial_indent="    ", subsequent_indent="    "))
