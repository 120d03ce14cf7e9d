"""Reads driver settings from the command line: --dir, -D options and property files, in the order
in which they are given.
"""

from collections.abc import Iterator, Mapping, Sequence

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.settings.raw_settings import RawSettings


def read_given(environment: Mapping[str, str], arguments: Sequence[str]) -> RawSettings:
    """Read the settings from the environment and from the command line."""
    given = RawSettings(dict(environment))
    rest = iter(arguments)
    for argument in rest:
        if argument == "--dir":
            given.set_variable("AERON_DIR", _next(argument, rest), argument)
        elif argument.startswith("--dir="):
            given.set_variable("AERON_DIR", argument.removeprefix("--dir="), "--dir")
        elif argument.startswith("-D"):
            pair = argument[2:] or _next(argument, rest)
            given.set_line("-D", pair)
        elif argument.startswith("-"):
            raise ConfigurationError(f"unknown option {argument}: -h lists the options")
        else:
            given.load_file(argument)
    return given


def _next(option: str, rest: Iterator[str]) -> str:
    value = next(rest, "")
    if not value:
        raise ConfigurationError(f"{option} requires a value")
    return value
