"""What is known of one setting: its variable, how its value is written, and its bounds.

    mtu_length: Annotated[int, Size("AERON_MTU_LENGTH", "longest datagram", 64, 65_504)] = 1_408

A field of the settings says its kind in its annotation, so that value, type and bounds stand in one
place. A kind reads a text (`parse`), writes a value the same way (`write`), and tells what is wrong
with a value that came from elsewhere (`fault`). Relations between settings are not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.driver.base.arith import I32_MAX, I32_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

FOR_EVER_NS = 1 << 62
"""146 years; longer ones count as this, so that a time and a duration never overflow together."""

_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def parse_flag(variable: str, text: str) -> bool:
    """Yes or no, with the spellings that Aeron takes."""
    found = _BOOLEANS.get(text.lower())
    if found is None:
        raise ConfigurationError(f"{variable}={text}: expected true or false")
    return found


def between(low: str, high: str) -> str:
    """Bounds, for people."""
    return f"from {low} to {high}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A text that is taken as it is."""

    variable: str
    """The environment variable that holds it."""
    meaning: str
    """What it does, for people; one line without a full stop."""

    def parse(self, text: str) -> Any:
        """The value that is written so; ConfigurationError names the variable and the text."""
        return text

    def write(self, value: Any) -> str:
        """The value as a text that `parse` reads."""
        return str(value)

    def bounds(self) -> str:
        """What may be given, for people."""
        return "any text"

    def fault(self, value: Any) -> str | None:
        """What is wrong with the value, whoever made it."""
        return None


@dataclass(frozen=True, slots=True)
class Number(Setting):
    """An integer; hexadecimal and octal prefixes count, as in C."""

    low: int = I32_MIN
    high: int = I32_MAX

    def parse(self, text: str) -> int | None:
        return uri_value.parse_int64(self.variable, text)

    def bounds(self) -> str:
        return between(self.write(self.low), self.write(self.high))

    def fault(self, value: int | None) -> str | None:
        if value is None or self.low <= value <= self.high:
            return None
        return f"{self.variable} is {self.write(value)}, but must be {self.bounds()}"


@dataclass(frozen=True, slots=True)
class Size(Number):
    """A length in bytes, such as 64k or 16m."""

    low: int = 0

    def parse(self, text: str) -> int:
        return uri_value.parse_size(self.variable, text)

    def write(self, value: int) -> str:
        return uri_value.format_size(value)


@dataclass(frozen=True, slots=True)
class Duration(Number):
    """Nanoseconds, such as 200ms, 5s or bare digits; kept in fields that end in `_ns`."""

    low: int = 0
    high: int = FOR_EVER_NS
    zero_is: int = 0
    """What 0 stands for: the least there is, where Aeron's users write 0 and mean that."""

    def parse(self, text: str) -> int | None:
        return min(uri_value.parse_duration_ns(self.variable, text), FOR_EVER_NS) or self.zero_is

    def write(self, value: int | None) -> str:
        if value is None:
            return "-1"
        return uri_value.format_duration_ns(value) if value else "0"

    def bounds(self) -> str:
        if self.high == FOR_EVER_NS:
            return f"at least {self.write(self.low)}"
        return between(self.write(self.low), self.write(self.high))


@dataclass(frozen=True, slots=True)
class Flag(Setting):
    """Yes or no, with the spellings that Aeron takes."""

    def parse(self, text: str) -> bool:
        return parse_flag(self.variable, text)

    def write(self, value: bool) -> str:
        return "true" if value else "false"

    def bounds(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Choice(Setting):
    """One of a few words; several spellings may stand for the same word."""

    words: Mapping[str, str]
    """From each spelling, which C function names may be among, to what the driver calls it."""
    ignores_case: bool = False

    def parse(self, text: str) -> str:
        found = self.words.get(text.upper() if self.ignores_case else text)
        if found is None:
            raise ConfigurationError(f"{self.variable}={text}: expected {self.bounds()}")
        return found

    def bounds(self) -> str:
        return " or ".join(dict.fromkeys(self.words.values()))

    def fault(self, value: str) -> str | None:
        if value in self.words.values():
            return None
        return f"{self.variable} is {value}, but must be {self.bounds()}"


@dataclass(frozen=True, slots=True)
class Directory(Setting):
    """A path."""

    def parse(self, text: str) -> Path:
        return Path(text)

    def bounds(self) -> str:
        return "a path"
