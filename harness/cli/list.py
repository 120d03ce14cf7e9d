"""`windtunnel list`: lists the included scenarios, or the judge's checks and gates."""

import json
import textwrap

import click

from windtunnel.harness.cli import scenarios
from windtunnel.harness.cli.render.table import printable

CHECK, BUILT_IN, GATE = "check", "built-in check", "gate"
HEADINGS = {
    CHECK: "Checks of the driver, by the names that `expect` uses",
    BUILT_IN: "Checks of every run, which `expect` does not name",
    GATE: "Gates: conditions of the harness itself, in every run",
}


@click.command("list")
@click.option("--checks", is_flag=True, help="List the judge's checks and gates instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_scenarios(checks: bool, as_json: bool) -> None:
    """List the included scenarios with their descriptions, or the judge's checks and gates."""
    if checks:
        _print_checks(as_json)
    else:
        _print_scenarios(as_json)


def _print_scenarios(as_json: bool) -> None:
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


def _print_checks(as_json: bool) -> None:
    rows = _judged()
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    width = max(len(row["name"]) for row in rows)
    for role, heading in HEADINGS.items():
        click.echo(click.style(heading, bold=True))
        for row in rows:
            if row["role"] == role:
                click.echo(f"  {row['name']:<{width}}  {row['about']}")


def _judged() -> list[dict[str, str]]:
    """Return all gates and checks, with the kind of violation that each check detects."""
    from windtunnel.harness.verdict.checks.subject import NAME, subject_lived
    from windtunnel.harness.verdict.registry import CHECKS, GATES, first_sentence

    checks = [
        {"name": each.name, "role": CHECK, "kind": str(each.kind), "about": each.about}
        for each in CHECKS.values()
    ]
    built_in = {"name": NAME, "role": BUILT_IN, "about": first_sentence(subject_lived)}
    gates = [
        {"name": name, "role": GATE, "about": first_sentence(gate)} for name, gate in GATES.items()
    ]
    return [*checks, built_in, *gates]
