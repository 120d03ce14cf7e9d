"""What a process was told, and by whom: environment, property files and -D options, the later
winning.

    environment  <  command line, from left to right
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from driver.base.errors import ConfigurationError
from driver.media_driver.settings import properties

ENVIRONMENT = "environment"


@dataclass(slots=True)
class GivenSettings:
    """Texts by the name of their variable; only what begins like a setting matters to anybody."""

    texts: dict[str, str]
    origins: dict[str, str] = field(default_factory=dict)
    """Who gave a variable last; what is not here came from the environment."""

    def give(self, variable: str, text: str, origin: str) -> None:
        """Set a variable, or take it back where the text is empty."""
        if text:
            self.texts[variable] = text
            self.origins[variable] = origin
        else:
            self.texts.pop(variable, None)
            self.origins.pop(variable, None)

    def shared(self) -> set[str]:
        """The variables that the environment gave, which other programs read as well."""
        return set(self.texts) - set(self.origins)

    def origin_of(self, variable: str) -> str:
        """Who gave the variable; "default" where nobody did."""
        if not self.texts.get(variable):
            return "default"
        return self.origins.get(variable, ENVIRONMENT)


def read_given(environment: Mapping[str, str], arguments: Sequence[str]) -> GivenSettings:
    """Everything that a process was told; `arguments` are those without options of other kinds."""
    given = GivenSettings(dict(environment))
    rest = iter(arguments)
    for argument in rest:
        if argument == "--dir":
            given.give("AERON_DIR", _next(argument, rest), argument)
        elif argument.startswith("--dir="):
            given.give("AERON_DIR", argument.removeprefix("--dir="), "--dir")
        elif argument.startswith("-D"):
            pair = argument[2:] or _next(argument, rest)
            given.give(*properties.read_line("-D", pair), "-D")
        elif argument.startswith("-"):
            raise ConfigurationError(f"unknown option {argument}; -h lists them")
        else:
            for variable, text in properties.read_file(argument):
                given.give(variable, text, argument)
    return given


def _next(option: str, rest: Iterator[str]) -> str:
    value = next(rest, "")
    if not value:
        raise ConfigurationError(f"{option} needs a value")
    return value
