"""Setting types of the media driver, in addition to those of `driver.settings.kinds`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from windtunnel.driver.base.arith import I64_MAX, I64_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.subscription_parameters import Group
from windtunnel.driver.media.port_manager import parse_port_range
from windtunnel.driver.settings.kinds import Choice, Duration, Number, Setting


class OptionalDuration(Duration):
    """A duration setting that can be unset. The text -1 unsets it, and the value is then None."""

    __slots__ = ()

    def parse(self, text: str) -> int | None:
        return None if text == "-1" else Duration.parse(self, text)

    def bounds(self) -> str:
        return f"-1, or at least {self.write(self.low)}"


class OptionalNumber(Number):
    """An integer setting that can be unset. An empty text unsets it, and the value is then None."""

    __slots__ = ()

    def write(self, value: int | None) -> str:
        return "" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Tag(OptionalNumber):
    """A setting that is a 64-bit group tag, or None if it is not set."""

    low: int = I64_MIN
    high: int = I64_MAX

    def bounds(self) -> str:
        return "any 64-bit integer"


@dataclass(frozen=True, slots=True)
class Words(Choice):
    """A setting whose text is a comma-separated list of known words. Its value is a tuple of these
    words.
    """

    count_max: int = 10

    def parse(self, text: str) -> Any:
        found = tuple(self.words.get(word, word) for word in text.split(","))
        problem = self.fault(found)
        if problem is not None:
            raise ConfigurationError(problem)
        return found

    def write(self, value: Any) -> str:
        return ",".join(value)

    def bounds(self) -> str:
        if not self.words:
            return "empty"
        return f"up to {self.count_max} of {', '.join(dict.fromkeys(self.words.values()))}"

    def fault(self, value: Any) -> str | None:
        known = set(self.words.values())
        if len(value) <= self.count_max and all(word in known for word in value):
            return None
        return f"{self.variable} is {self.write(value)}, but must be {self.bounds()}"


class PortRange(Setting):
    """A port range setting such as "20000 20100", where "0 0" lets the system choose the port."""

    __slots__ = ()

    def parse(self, text: str) -> tuple[int, int]:
        found = parse_port_range(self.variable, text)
        return found.low, found.high

    def write(self, value: tuple[int, int]) -> str:
        return f"{value[0]} {value[1]}"

    def bounds(self) -> str:
        return "two ports in ascending order, or 0 0"

    def fault(self, value: tuple[int, int]) -> str | None:
        try:
            self.parse(self.write(value))
        except ConfigurationError as error:
            return str(error)
        return None


class Inferable(Setting):
    """A setting that is true, false, or inferred from the channel."""

    __slots__ = ()

    def parse(self, text: str) -> Group:
        try:
            return Group(text.lower())
        except ValueError:
            raise ConfigurationError(f"{self.variable}={text}: expected {self.bounds()}") from None

    def write(self, value: Group) -> str:
        return value.value

    def bounds(self) -> str:
        return "true, false or infer"


@dataclass(frozen=True, slots=True)
class Arguments(Setting):
    """A setting whose text is a list of arguments, such as those of a loss interceptor. The
    function `read` parses it.
    """

    read: Callable[[str, str], Any]
    """Function that parses the text of the setting and returns its value."""
    grammar: str

    def parse(self, text: str) -> Any:
        return self.read(self.variable, text)

    def bounds(self) -> str:
        return self.grammar
