"""What is known of one setting: its property's name, how its value is written, and its bounds.

    segment_file_length: Annotated[int, Size("aeron.archive.segment.file.length", "...", low, high)]

A field of the settings says its kind in its annotation. The environment variable is the property's
name in upper case, with underscores in place of the dots. Source: archive-protocol 8.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver.archive.storage.checksum import by_name
from driver.base.arith import I32_MAX, I32_MIN, I64_MAX, is_power_of_two
from driver.base.errors import ConfigurationError
from driver.channel import uri_value

FOR_EVER_NS = 1 << 62
"""Longer durations count as this, so that a time and a duration never overflow together."""


def variable_of(name: str) -> str:
    """The environment variable that a property's name stands for."""
    return name.upper().replace(".", "_")


@dataclass(frozen=True, slots=True)
class Setting:
    """A text that is taken as it is."""

    name: str
    """Of the property, as Aeron has it."""
    meaning: str
    """What it does, for people; one line without a full stop."""

    @property
    def variable(self) -> str:
        """The environment variable that holds it."""
        return variable_of(self.name)

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
    """An integer."""

    low: int = I32_MIN
    high: int = I32_MAX
    is_power: bool = False

    def parse(self, text: str) -> int:
        return uri_value.parse_int64(self.variable, text)

    def bounds(self) -> str:
        kind = "a power of two " if self.is_power else ""
        return f"{kind}from {self.write(self.low)} to {self.write(self.high)}"

    def fault(self, value: int) -> str | None:
        if self.low <= value <= self.high and (not self.is_power or is_power_of_two(value)):
            return None
        return f"{self.variable} is {self.write(value)}, but must be {self.bounds()}"


@dataclass(frozen=True, slots=True)
class Size(Number):
    """A length in bytes, such as 64k or 16m."""

    low: int = 0
    high: int = I64_MAX

    def parse(self, text: str) -> int:
        return uri_value.parse_size(self.variable, text)

    def write(self, value: int) -> str:
        return uri_value.format_size(value)


@dataclass(frozen=True, slots=True)
class Duration(Number):
    """Nanoseconds, such as 200ms, 5s or bare digits; kept in fields that end in `_ns`."""

    low: int = 1
    high: int = FOR_EVER_NS

    def parse(self, text: str) -> int:
        return min(uri_value.parse_duration_ns(self.variable, text), FOR_EVER_NS)

    def write(self, value: int) -> str:
        return uri_value.format_duration_ns(value)

    def bounds(self) -> str:
        return f"at least {self.write(self.low)}"


@dataclass(frozen=True, slots=True)
class Flag(Setting):
    """Yes or no."""

    def parse(self, text: str) -> bool:
        return uri_value.parse_bool(self.variable, text.lower())

    def write(self, value: bool) -> str:
        return "true" if value else "false"

    def bounds(self) -> str:
        return "true or false"


@dataclass(frozen=True, slots=True)
class Choice(Setting):
    """One of a few words; a Java class name stands for one of them by its last part."""

    words: Mapping[str, str]
    """From each spelling to what we call it."""

    def parse(self, text: str) -> str:
        spelling = text.rpartition(".")[2] if "." in text else text
        found = self.words.get(spelling) or self.words.get(spelling.upper())
        if found is None:
            raise ConfigurationError(f"{self.variable}={text}: expected {self.bounds()}")
        return found

    def bounds(self) -> str:
        return " or ".join(dict.fromkeys(self.words.values()))


@dataclass(frozen=True, slots=True)
class ChecksumName(Setting):
    """The name of a checksum, or nothing."""

    def parse(self, text: str) -> str:
        try:
            return by_name(text).name
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.variable}={text}: {error}") from error

    def bounds(self) -> str:
        return "CRC-32 or CRC-32C, or nothing"


@dataclass(frozen=True, slots=True)
class Directory(Setting):
    """A path."""

    def parse(self, text: str) -> Path:
        return Path(text)

    def bounds(self) -> str:
        return "a path"
