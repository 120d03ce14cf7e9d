"""The parts of an `aeron:udp` channel that the harness must know, read by the harness itself.

    aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408|init-term-id=-3|term-id=-3|term-offset=0

Knows only what the fault rules, the traffic plan and the judge need; what a parameter does to a
driver is the driver's business, and so is refusing one that it does not know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.harness.scenario.schema.flow_control import FlowControl, parse_flow_control

TERM_LENGTH_MIN = 64 * 1024
TERM_LENGTH_MAX = 1 << 30
TERM_LENGTH_DEFAULT = 16 * 1024 * 1024
MTU_DEFAULT = 1408
MTU_MAX = 65504
HEADER_LENGTH = 32
ALIGNMENT = 32
MULTICAST_FIRST, MULTICAST_LAST = 224, 239
"""First bytes of IPv4 multicast groups."""
SELF = "self"
"""In place of a host's name: the one whose channel it is."""

_PREFIX = "aeron:udp?"
_SIZE = re.compile(r"(\d+)([kmgKMG]?)")
_SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION = re.compile(r"(\d+)(ns|us|ms|s|)")
_NANOSECONDS = {"": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True)
class Channel:
    """A parsed channel: its parameters as written."""

    parameters: Mapping[str, str]

    @property
    def endpoint_host(self) -> str:
        return self._endpoint()[0]

    @property
    def endpoint_port(self) -> int:
        return self._endpoint()[1]

    @property
    def has_endpoint(self) -> bool:
        return "endpoint" in self.parameters

    @property
    def is_multicast(self) -> bool:
        """Whether the endpoint is an IPv4 multicast group."""
        first = self.parameters.get("endpoint", "").partition(".")[0]
        return first.isdigit() and MULTICAST_FIRST <= int(first) <= MULTICAST_LAST

    @property
    def control_mode(self) -> str:
        """`dynamic`, `manual`, or nothing for a channel with one destination."""
        return self.parameters.get("control-mode", "")

    @property
    def control(self) -> tuple[str, int] | None:
        """Host and port of the control address; None without one."""
        return self._address("control") if "control" in self.parameters else None

    @property
    def is_group(self) -> bool:
        """Whether it may have several destinations."""
        return self.is_multicast or self.control_mode in ("dynamic", "manual")

    @property
    def ports(self) -> tuple[int, ...]:
        """All UDP ports that it names."""
        names = [name for name in ("endpoint", "control") if name in self.parameters]
        return tuple(self._address(name)[1] for name in names)

    @property
    def group_tag(self) -> int | None:
        """What a receiver tells of itself; None if it tells nothing."""
        text = self.parameters.get("gtag")
        if text is None:
            return None
        if not re.fullmatch(r"-?\d+", text):
            raise ValueError(f"gtag={text}: expected a whole number")
        return int(text)

    @property
    def flow_control(self) -> FlowControl:
        """Whose windows bind the sender."""
        text = self.parameters.get("fc")
        return parse_flow_control(text) if text else FlowControl("max")

    @property
    def session_id(self) -> int | None:
        """None when the driver chooses it."""
        return self._id("session-id")

    @property
    def term_length(self) -> int:
        length = self._size("term-length", TERM_LENGTH_DEFAULT)
        if not TERM_LENGTH_MIN <= length <= TERM_LENGTH_MAX or length & (length - 1):
            raise ValueError(f"term-length {length}: expected a power of two from 64k to 1g")
        return length

    @property
    def mtu(self) -> int:
        mtu = self._size("mtu", MTU_DEFAULT)
        if not HEADER_LENGTH < mtu <= MTU_MAX or mtu % ALIGNMENT:
            raise ValueError(f"mtu {mtu}: expected a multiple of 32 from 64 to {MTU_MAX}")
        return mtu

    @property
    def reliable(self) -> bool:
        return self._flag("reliable", True)

    @property
    def receiver_window_bytes(self) -> int | None:
        return self._size("rcv-wnd", 0) or None

    @property
    def send_buffer_bytes(self) -> int | None:
        """What a socket may hold of what was sent; None when the driver's default holds."""
        return self._size("so-sndbuf", 0) or None

    @property
    def publication_window_bytes(self) -> int | None:
        """How far a publisher may be ahead of its sender; None when the driver's default holds."""
        return self._size("pub-wnd", 0) or None

    @property
    def nak_delay_ns(self) -> int | None:
        """How long a receiver waits before it asks for a frame; None when its default holds."""
        text = self.parameters.get("nak-delay")
        if text is None:
            return None
        match = _DURATION.fullmatch(text)
        if match is None:
            raise ValueError(f"nak-delay={text}: expected a number followed by ns, us, ms or s")
        return int(match[1]) * _NANOSECONDS[match[2]]

    @property
    def signals_end(self) -> bool:
        """Whether the publication tells its readers that it has ended."""
        return self._flag("eos", True)

    @property
    def initial_term_id(self) -> int | None:
        return self._id("init-term-id")

    @property
    def initial_position(self) -> int:
        """Where the stream starts: 0 unless the channel names a term id and offset."""
        initial, term_id = self._id("init-term-id"), self._id("term-id")
        offset = self._size("term-offset", 0)
        given = [name for name in _START if name in self.parameters]
        if initial is None or term_id is None or len(given) != len(_START):
            if given:
                raise ValueError(f"{', '.join(_START)} go together, found only {', '.join(given)}")
            return 0
        count = (term_id - initial) & 0xFFFFFFFF
        if count >= 1 << 31:
            raise ValueError(f"term-id {term_id} is before init-term-id {initial}")
        if offset >= self.term_length or offset % ALIGNMENT:
            raise ValueError(f"term-offset {offset}: expected a multiple of 32 within the term")
        return count * self.term_length + offset

    def _endpoint(self) -> tuple[str, int]:
        return self._address("endpoint")

    def _address(self, name: str) -> tuple[str, int]:
        host, _, port = self.parameters.get(name, "").rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"expected {name}=HOST:PORT with a port from 1 to 65535")
        return host, int(port)

    def _size(self, name: str, default: int) -> int:
        text = self.parameters.get(name)
        if text is None:
            return default
        match = _SIZE.fullmatch(text)
        if match is None:
            raise ValueError(f"{name}={text}: expected bytes, or a number followed by k, m or g")
        return int(match[1]) * _SCALE[match[2].lower()]

    def _id(self, name: str) -> int | None:
        text = self.parameters.get(name)
        if text is None:
            return None
        if not re.fullmatch(r"-?\d+", text) or not -(1 << 31) <= int(text) < 1 << 31:
            raise ValueError(f"{name}={text}: expected a signed 32-bit number")
        return int(text)

    def _flag(self, name: str, default: bool) -> bool:
        text = self.parameters.get(name)
        if text not in (None, "true", "false"):
            raise ValueError(f"{name}={text}: expected true or false")
        return default if text is None else text == "true"


_START = ("init-term-id", "term-id", "term-offset")


def parse_channel(text: str) -> Channel:
    """Split a channel into its parameters; only UDP is known."""
    if not text.startswith(_PREFIX):
        raise ValueError(f"expected a channel that starts with {_PREFIX}, found {text!r}")
    parameters: dict[str, str] = {}
    for part in text.removeprefix(_PREFIX).split("|"):
        name, equals, value = part.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"expected name=value, found {part!r}")
        if name in parameters:
            raise ValueError(f"parameter {name} is there twice")
        parameters[name] = value
    return Channel(parameters)


def placeholders(text: str) -> list[str]:
    """The hosts that a channel names, as in `${b}`."""
    return _PLACEHOLDER.findall(text)


def fill_in(text: str, addresses: Mapping[str, str]) -> str:
    """Put the addresses of hosts in the place of their names."""
    return _PLACEHOLDER.sub(lambda match: addresses[match[1]], text)
