"""Reads the settings of client contexts from environment variables.

    {"client_name": ("AERON_CLIENT_NAME", text), ...}      field: its variable, and its parser

Client programs use these contexts. The settings of a driver or archive process are in
`raw_settings`.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

Reader = Callable[[str, str], Any]
"""A function from (variable, text) to the parsed value. Raises ConfigurationError."""


def text(variable: str, value: str) -> str:
    """Return a variable's text unchanged. This parser is for variables that accept any text."""
    return value


def read_variables(
    fields: Mapping[str, tuple[str, Reader]],
    environment: Mapping[str, str] | None,
    overridden: Collection[str],
) -> dict[str, Any]:
    """Read environment variables, and return their parsed values by the name of the context field.
    Fields in `overridden` are left out.

    If `environment` is None, this process's environment is read. Raises ConfigurationError with the
    name of a variable whose value is invalid.
    """
    environment = os.environ if environment is None else environment
    return {
        name: read(variable, environment[variable])
        for name, (variable, read) in fields.items()
        if name not in overridden and environment.get(variable)
    }
