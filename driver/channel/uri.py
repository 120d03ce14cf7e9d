"""Channel URIs as immutable values.

    [aeron-spy:]aeron:udp?endpoint=10.0.0.2:40123|mtu=8k
     `-- spy          `-- media  `-- params, in order, keys case-sensitive

`parse(str(uri)) == uri` for every URI. Only the syntax is checked, not the meaning of the keys.
Where Aeron's drivers differ, the syntax is that of the C driver, without three of its defects: a
key never matches a longer key that starts with it, "aeron:ipc" must be followed by "?" or by
nothing, and a last key without "=" is an error. If a key occurs twice, its last value is used.
Source: spec 9.1, Aeron 1.53.
"""

from dataclasses import dataclass

from windtunnel.driver.base.arith import I32_MAX, I32_MIN, I64_MAX, I64_MIN
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri_value

SPY_PREFIX = "aeron-spy:"
SCHEME = "aeron:"
UDP = "udp"
IPC = "ipc"
LENGTH_MAX = 4095


class InvalidChannelError(ConfigurationError):
    """A channel is malformed or invalid. Clients receive the error code INVALID_CHANNEL."""


@dataclass(frozen=True, slots=True)
class ChannelUri:
    """The media, the spy prefix and the parameters of a channel URI."""

    media: str
    params: tuple[tuple[str, str], ...] = ()
    is_spy: bool = False

    def __post_init__(self) -> None:
        assert self.media in (UDP, IPC), f"media {self.media!r}"
        keys = [key for key, _ in self.params]
        assert len(set(keys)) == len(keys), f"a key occurs twice in {keys}"
        for key, value in self.params:
            assert key, f"empty key before {value!r}"
            assert value, f"empty value of {key!r}"
            assert not set("=|\0") & set(key), f"key {key!r}"
            assert not set("|\0") & set(value), f"value {value!r} of {key!r}"

    @property
    def is_udp(self) -> bool:
        return self.media == UDP

    @property
    def is_ipc(self) -> bool:
        return self.media == IPC

    def __str__(self) -> str:
        text = (SPY_PREFIX if self.is_spy else "") + SCHEME + self.media
        if not self.params and self.media == IPC:
            return text
        return text + "?" + "|".join(f"{key}={value}" for key, value in self.params)

    def get(self, key: str) -> str | None:
        """Return the value of a parameter as a string, or None if the key is absent."""
        for name, value in self.params:
            if name == key:
                return value
        return None

    def __contains__(self, key: object) -> bool:
        return any(name == key for name, _ in self.params)

    def with_param(self, key: str, value: str | int | bool) -> "ChannelUri":
        """Return a copy of the URI in which a parameter is changed, or added at the end."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if key not in self:
            return ChannelUri(self.media, (*self.params, (key, text)), self.is_spy)
        params = tuple((name, text if name == key else old) for name, old in self.params)
        return ChannelUri(self.media, params, self.is_spy)

    def without(self, *keys: str) -> "ChannelUri":
        """Return a copy of the URI without the parameters `keys`."""
        params = tuple(item for item in self.params if item[0] not in keys)
        return ChannelUri(self.media, params, self.is_spy)

    def size(self, key: str, minimum: int = 0, maximum: int = I64_MAX) -> int | None:
        """Return the value of a size parameter in bytes, or None if the key is absent."""
        text = self.get(key)
        return None if text is None else uri_value.parse_size(key, text, minimum, maximum)

    def duration_ns(self, key: str, minimum: int = 0, maximum: int = I64_MAX) -> int | None:
        """Return the value of a duration parameter in nanoseconds, or None if the key is absent."""
        text = self.get(key)
        return None if text is None else uri_value.parse_duration_ns(key, text, minimum, maximum)

    def boolean(self, key: str) -> bool | None:
        text = self.get(key)
        return None if text is None else uri_value.parse_bool(key, text)

    def int32(self, key: str, minimum: int = I32_MIN, maximum: int = I32_MAX) -> int | None:
        text = self.get(key)
        return None if text is None else uri_value.parse_int32(key, text, minimum, maximum)

    def int64(self, key: str, minimum: int = I64_MIN, maximum: int = I64_MAX) -> int | None:
        text = self.get(key)
        return None if text is None else uri_value.parse_int64(key, text, minimum, maximum)


def parse(text: str) -> ChannelUri:
    """Parse a channel URI. Raises InvalidChannelError for the first syntax error."""
    if len(text) > LENGTH_MAX:
        raise InvalidChannelError(
            f"channel of {len(text)} characters, expected at most {LENGTH_MAX}: '{text}'"
        )
    if "\0" in text:
        raise InvalidChannelError(f"channel {text!r} contains a zero byte")
    is_spy = text.startswith(SPY_PREFIX)
    rest = text[len(SPY_PREFIX) :] if is_spy else text
    if not rest.startswith(SCHEME):
        raise InvalidChannelError(f"channel '{text}': expected it to start with '{SCHEME}'")
    rest = rest[len(SCHEME) :]
    media, mark, tail = rest.partition("?")
    if media not in (UDP, IPC):
        raise InvalidChannelError(f"channel '{text}': expected media udp or ipc, found '{media}'")
    if media == UDP and not mark:
        raise InvalidChannelError(f"channel '{text}': expected '?' and parameters after 'udp'")
    return ChannelUri(media, _parse_params(text, tail), is_spy)


def _parse_params(text: str, tail: str) -> tuple[tuple[str, str], ...]:
    params: dict[str, str] = {}
    pieces = tail.split("|")
    for number, piece in enumerate(pieces):
        is_last = number == len(pieces) - 1
        if is_last and not piece:
            break
        key, mark, value = piece.partition("=")
        if not mark:
            raise InvalidChannelError(f"channel '{text}': expected '=' after key '{key}'")
        if not key:
            raise InvalidChannelError(f"channel '{text}': empty key before '={value}'")
        if value:
            params[key] = value
        elif not is_last:
            raise InvalidChannelError(f"channel '{text}': empty value of key '{key}'")
    return tuple(params.items())
