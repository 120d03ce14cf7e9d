"""Parses the values of options that several commands share."""

import click

SEED = click.IntRange(min=0, max=(1 << 63) - 1)
"""The type of options with a seed. The maximum is that of `seeds: root` in a scenario."""


def name_values(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Parse NAME=VALUE options into a dictionary (click callback)."""
    found = {}
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise click.BadParameter(f"expected NAME=VALUE, found {text!r}")
        found[name] = value
    return found
