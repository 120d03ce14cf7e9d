"""The options that commands of `windtunnel lab` share: the name of the lab, and JSON output."""

import click

NAME = "lab"
name_option = click.option(
    "--name", default=NAME, help=f"Name of the lab, if there are several.  [default: {NAME}]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def scenario_name(name: str) -> str:
    """Return the name of a lab's scenario, which is part of its run folder's name."""
    return NAME if name == NAME else f"{NAME}/{name}"
