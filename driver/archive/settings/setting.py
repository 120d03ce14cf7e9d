"""Kinds of settings that only an archive has, in addition to those in `driver.settings.kinds`.

Aeron interprets any text other than `true` as false. Here a flag must be `true` or `false`.
"""

from dataclasses import dataclass

from windtunnel.driver.archive.storage.checksum import by_name
from windtunnel.driver.base.arith import is_power_of_two
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value
from windtunnel.driver.settings.kinds import Choice, Flag, Setting, Size


@dataclass(frozen=True, slots=True)
class PowerOfTwo(Size):
    """A setting that is a length in bytes and must be a power of two."""

    def bounds(self) -> str:
        return f"a power of two {Size.bounds(self)}"

    def fault(self, value: int | None) -> str | None:
        if value is None or is_power_of_two(value):
            return Size.fault(self, value)
        return f"{self.variable} is {self.write(value)}, but must be {self.bounds()}"


@dataclass(frozen=True, slots=True)
class TrueOrFalse(Flag):
    """A boolean setting that must be written as true or false."""

    def parse(self, text: str) -> bool:
        return uri_value.parse_bool(self.variable, text.lower())


@dataclass(frozen=True, slots=True)
class WordOrClass(Choice):
    """A setting that is empty or one of several words. A Java class name selects the word that is
    its last part.
    """

    def parse(self, text: str) -> str:
        last = text.rpartition(".")[2]
        spellings = (spelling for spelling in (last, last.upper()) if spelling in self.words)
        return Choice.parse(self, next(spellings, text))

    def fault(self, value: str) -> str | None:
        return Choice.fault(self, value) if value else None


@dataclass(frozen=True, slots=True)
class ChecksumName(Setting):
    """A setting that is the name of a checksum, or empty for no checksum."""

    def parse(self, text: str) -> str:
        try:
            return by_name(text).name
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.variable}={text}: {error}") from error

    def bounds(self) -> str:
        return "CRC-32 or CRC-32C, or nothing"
