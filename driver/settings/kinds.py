"""Kinds of settings. Each kind has an environment variable, a text format and limits on the value.

    mtu_length: Annotated[int, Size("AERON_MTU_LENGTH", "longest datagram", 64, 65_504)] = 1_408

The annotation of a field specifies its type and its kind. A kind parses a string (`parse`), formats
a value as such a string (`write`), and validates a value (`fault`). Constraints between settings
are checked elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.driver.base.arith import I32_MAX, I32_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

DURATION_MAX_NS = 1 << 62
"""The longest duration, 146 years. The limit ensures that a time plus a duration never overflows.
"""

_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def parse_flag(variable: str, text: str) -> bool:
    """Parse a boolean, in any spelling that Aeron accepts."""
    found = _BOOLEANS.get(text.lower())
    if found is None:
        raise ConfigurationError(f"{variable}={text}: expected true or false")
    return found


def between(low: str, high: str) -> str:
    """Return the part of an error message that describes a range of valid values."""
    return f"from {low} to {high}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that accepts any text. Base class of the other kinds."""

    variable: str
    """The environment variable of the setting."""
    description: str
    """A one-line description for users, without a full stop."""

    def parse(self, text: str) -> Any:
        """Parse the text of a setting. Raises ConfigurationError if the text is invalid."""
        return text

    def write(self, value: Any) -> str:
        """Format a value as text that `parse` accepts."""
        return str(value)

    def bounds(self) -> str:
        """Return a description of the valid values, for users."""
        return "any text"

    def fault(self, value: Any) -> str | None:
        """Return the reason why a value is invalid, or None if it is valid."""
        return None


@dataclass(frozen=True, slots=True)
class Number(Setting):
    """A setting that is an integer: decimal, or with a hexadecimal or octal prefix as in C."""

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
    """A setting that is a length in bytes, such as 64k or 16m."""

    low: int = 0

    def parse(self, text: str) -> int:
        return uri_value.parse_size(self.variable, text)

    def write(self, value: int) -> str:
        return uri_value.format_size(value)


@dataclass(frozen=True, slots=True)
class Duration(Number):
    """A duration in nanoseconds, written as 200ms, 5s or digits without a unit. Field names end in
    `_ns`.
    """

    low: int = 0
    high: int = DURATION_MAX_NS
    value_of_zero: int = 0
    """The value that 0 stands for, in settings where Aeron accepts 0 for the minimum."""

    def parse(self, text: str) -> int | None:
        return (
            min(uri_value.parse_duration_ns(self.variable, text), DURATION_MAX_NS)
            or self.value_of_zero
        )

    def write(self, value: int | None) -> str:
        if value is None:
            return "-1"
        return uri_value.format_duration_ns(value) if value else "0"

    def bounds(self) -> str:
        if self.high == DURATION_MAX_NS:
            return f"at least {self.write(self.low)}"
        return between(self.write(self.low), self.write(self.high))


class Flag(Setting):
    """A setting that is a boolean, in any spelling that Aeron accepts."""

    __slots__ = ()

    def parse(self, text: str) -> bool:
        return parse_flag(self.variable, text)

    def write(self, value: bool) -> str:
        return "true" if value else "false"

    def bounds(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Choice(Setting):
    """A setting that is one of several words, each of which may have several spellings."""

    words: Mapping[str, str]
    """Maps each spelling, for example the name of a C function, to the word that this driver uses.
    """
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


class Directory(Setting):
    """A setting that is the path of a directory."""

    __slots__ = ()

    def parse(self, text: str) -> Path:
        return Path(text)

    def bounds(self) -> str:
        return "a path"
