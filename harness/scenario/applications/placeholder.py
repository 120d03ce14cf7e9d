"""The placeholders in the commands and variables of applications.

    ${b}                  the address of host b, known when the scenario is resolved
    ${aeron.dir}          the directory of the application's driver  \
    ${scenario.dir}       the folder of the scenario file             > known when it is started
    ${harness.python}     the interpreter that runs Windtunnel       /

No name of a host has a dot.
"""

from collections.abc import Mapping
from re import Match

from windtunnel.harness.scenario.schema.channel import PLACEHOLDER

AERON_DIRECTORY = "aeron.dir"
SCENARIO_DIRECTORY = "scenario.dir"
PYTHON = "harness.python"
AT_START = (AERON_DIRECTORY, SCENARIO_DIRECTORY, PYTHON)
"""Placeholders whose values are known when an application is started."""


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders that have a value. All others remain."""

    def value_of(match: Match[str]) -> str:
        return values.get(match[1], match[0])

    return PLACEHOLDER.sub(value_of, text)
