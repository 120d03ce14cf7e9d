"""Settings that a client of a program may have from the environment.

    {"client_name": ("AERON_CLIENT_NAME", text), ...}      field: its variable, and who reads it

For contexts that a program makes; what a process is told is in `given`.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

Reader = Callable[[str, str], Any]
"""From variable and text to the value; raises ConfigurationError."""


def text(variable: str, said: str) -> str:
    """A text, as it is."""
    return said


def read_variables(
    fields: Mapping[str, tuple[str, Reader]],
    environment: Mapping[str, str] | None,
    overridden: Collection[str],
) -> dict[str, Any]:
    """Values by field, of those that have a variable which is set and are not overridden.

    None is the environment of this process. Raises ConfigurationError naming the variable that
    cannot be read.
    """
    environment = os.environ if environment is None else environment
    return {
        name: read(variable, environment[variable])
        for name, (variable, read) in fields.items()
        if name not in overridden and environment.get(variable)
    }
