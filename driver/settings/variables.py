"""Settings that a context reads from environment variables.

    {"client_name": ("AERON_CLIENT_NAME", text), ...}      field: its variable, and its parser

Used by contexts in a program; settings of a process are in `raw_settings`.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

Reader = Callable[[str, str], Any]
"""Function from (variable, text) to the value; raises ConfigurationError."""


def text(variable: str, value: str) -> str:
    """Return the text unchanged."""
    return value


def read_variables(
    fields: Mapping[str, tuple[str, Reader]],
    environment: Mapping[str, str] | None,
    overridden: Collection[str],
) -> dict[str, Any]:
    """Return values by field, for variables that are set and fields that are not overridden.

    `environment` None is the environment of this process. Raises ConfigurationError that names the
    variable with an invalid value.
    """
    environment = os.environ if environment is None else environment
    return {
        name: read(variable, environment[variable])
        for name, (variable, read) in fields.items()
        if name not in overridden and environment.get(variable)
    }
