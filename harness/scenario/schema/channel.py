"""Parses the parameters of `aeron:udp` channels that the harness needs.

    aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408|init-term-id=-3|term-id=-3|term-offset=0

Reads what fault rules, the traffic plan and the judge need, independently of the driver's parser.
Drivers ignore unknown parameters, so a scenario with a misspelt parameter would silently test
something else. `check_parameters` rejects parameters that Aeron does not have.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from windtunnel.harness.scenario.schema.flow_control import FlowControl, parse_flow_control
from windtunnel.harness.scenario.schema.problem import unknown_name
from windtunnel.harness.scenario.schema.units import DURATION_NS_MAX, format_duration, shown

TERM_LENGTH_MIN = 64 * 1024
TERM_LENGTH_MAX = 1 << 30
SIZE_MAX = (1 << 31) - 1
"""Maximum of all sizes in a channel. Drivers store sizes in 32 bits."""
INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
TERM_LENGTH_DEFAULT = 16 * 1024 * 1024
MTU_DEFAULT = 1408
MTU_MAX = 65504
WINDOW_BYTES = 128 * 1024
"""Default receiver window. Source: Aeron 1.53, aeron.rcv.initial.window.length."""
RECEIVE_BUFFER_BYTES = 128 * 1024
"""Default length of a receive buffer. Source: Aeron 1.53, aeron.socket.so_rcvbuf."""
LINGER_NS = 5_000_000_000
"""Default linger time of a publication. Source: Aeron 1.53, aeron.publication.linger.timeout."""
HEADER_LENGTH = 32
ALIGNMENT = 32
MULTICAST_FIRST, MULTICAST_LAST = 224, 239
"""Range of the first byte of an IPv4 multicast address."""
SELF = "self"
"""Placeholder for the host that uses the channel, in place of a host name."""

NAK_ALL_GAPS = "windtunnel.nak-all-gaps"
RETRANSMIT_RANGES = "windtunnel.retransmit-ranges"
GAP_FILL_DATAGRAMS = "windtunnel.gap-fill-datagrams"
GAP_FILL_DELAY = "windtunnel.gap-fill-delay"

PARAMETERS = (
    *("endpoint", "interface", "control", "control-mode", "ttl", "tags", "alias"),
    *("mtu", "term-length", "init-term-id", "term-id", "term-offset", "session-id", "stream-id"),
    *("linger", "sparse", "eos", "ssc", "pub-wnd", "max-resend", "fc"),
    *("reliable", "tether", "rejoin", "group", "gtag", "cc", "rcv-wnd", "nak-delay"),
    *("response-endpoint", "response-correlation-id", "so-sndbuf", "so-rcvbuf"),
    *(NAK_ALL_GAPS, RETRANSMIT_RANGES, "windtunnel.linger-max"),
    *(GAP_FILL_DATAGRAMS, GAP_FILL_DELAY),
    "untethered-window-limit-timeout",
    "untethered-linger-timeout",
    "untethered-resting-timeout",
    *("media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset", "ats"),
)
"""All parameters of a UDP channel. Source: specification of Aeron 1.53, section 9.2.

Only this driver has those with the prefix `windtunnel.`."""

_PREFIX = "aeron:udp?"
_SIZE = re.compile(r"(\d{1,18})([kmgKMG]?)", re.ASCII)
_SCENARIO_SIZE = re.compile(r"(\d{1,18})([KMG])i?B", re.ASCII | re.IGNORECASE)
_SCALE = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DURATION = re.compile(r"(\d{1,18})(ns|us|ms|s|)", re.ASCII)
_ID = re.compile(r"-?\d{1,10}", re.ASCII)
_TAG = re.compile(r"-?\d{1,19}", re.ASCII)
_PORT = re.compile(r"\d{1,5}", re.ASCII)
_FIRST_BYTE = re.compile(r"\d{1,3}", re.ASCII)
_NANOSECONDS = {"": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True)
class Channel:
    """A parsed channel with its parameters as written."""

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
        """Return whether the endpoint is an IPv4 multicast group."""
        first = self.parameters.get("endpoint", "").partition(".")[0]
        return (
            bool(_FIRST_BYTE.fullmatch(first)) and MULTICAST_FIRST <= int(first) <= MULTICAST_LAST
        )

    @property
    def control_mode(self) -> str:
        """Return the channel's control mode, `dynamic` or `manual`, or an empty string if the
        channel has none.
        """
        return self.parameters.get("control-mode", "")

    @property
    def control(self) -> tuple[str, int] | None:
        """Return the host and port of the control address, or None if the channel has none."""
        return self._address("control") if "control" in self.parameters else None

    @property
    def is_cubic(self) -> bool:
        """Return whether images have CUBIC congestion control."""
        return self.parameters.get("cc") == "cubic"

    @property
    def is_group(self) -> bool:
        """Return whether the channel can reach several destinations, by multicast or MDC."""
        return self.is_multicast or self.control_mode in ("dynamic", "manual")

    @property
    def ports(self) -> tuple[int, ...]:
        """Return all UDP ports in the channel."""
        names = [name for name in ("endpoint", "control") if name in self.parameters]
        return tuple(self._address(name)[1] for name in names)

    @property
    def group_tag(self) -> int | None:
        """Return the group tag that a receiver sends, or None if it sends none."""
        text = self.parameters.get("gtag")
        if text is None:
            return None
        if not _TAG.fullmatch(text) or not INT64_MIN <= int(text) <= INT64_MAX:
            raise ValueError(f"gtag={shown(text)}: expected a signed 64-bit integer")
        return int(text)

    @property
    def flow_control(self) -> FlowControl:
        """Return the sender's flow control strategy."""
        text = self.parameters.get("fc")
        return parse_flow_control(text) if text else FlowControl("max")

    @property
    def session_id(self) -> int | None:
        """Return the session id, or None if the driver chooses it."""
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
    def receive_buffer_bytes(self) -> int:
        """Return the length of the receive buffer, which limits the receiver window."""
        return self._size("so-rcvbuf", 0) or RECEIVE_BUFFER_BYTES

    @property
    def send_buffer_bytes(self) -> int | None:
        """Return the size of the socket's send buffer, or None for the driver's default."""
        return self._size("so-sndbuf", 0) or None

    @property
    def publication_window_bytes(self) -> int | None:
        """Return the publication window, or None for the driver's default."""
        return self._size("pub-wnd", 0) or None

    @property
    def nak_all_gaps(self) -> bool | None:
        """Return whether NAKs are sent for all gaps at once, or None for the driver's default."""
        return self._flag(NAK_ALL_GAPS, False) if NAK_ALL_GAPS in self.parameters else None

    @property
    def retransmit_ranges(self) -> bool | None:
        """Return whether many ranges are retransmitted at once, or None for the driver's
        default.
        """
        is_given = RETRANSMIT_RANGES in self.parameters
        return self._flag(RETRANSMIT_RANGES, False) if is_given else None

    @property
    def gap_fill_datagrams(self) -> int | None:
        """Return the number of later datagrams after which a gap of an unreliable stream is filled,
        or None for the driver's default.
        """
        datagrams = self._id(GAP_FILL_DATAGRAMS)
        if datagrams is not None and datagrams < 0:
            raise ValueError(f"{GAP_FILL_DATAGRAMS}={datagrams}: expected at least 0")
        return datagrams

    @property
    def gap_fill_delay_ns(self) -> int | None:
        """Return the time after which such a gap is filled at the latest, or None for the driver's
        default.
        """
        return self._duration_ns(GAP_FILL_DELAY)

    @property
    def nak_delay_ns(self) -> int | None:
        """Return the delay before a receiver sends a NAK, or None for the driver's default."""
        return self._duration_ns("nak-delay")

    @property
    def linger_ns(self) -> int:
        """Return how long a closed publication continues to answer NAKs with retransmits, in
        nanoseconds.
        """
        linger_ns = self._duration_ns("linger")
        return LINGER_NS if linger_ns is None else linger_ns

    @property
    def signals_end(self) -> bool:
        """Return whether the publication sends the end-of-stream flag when it is closed."""
        return self._flag("eos", True)

    @property
    def initial_term_id(self) -> int | None:
        return self._id("init-term-id")

    @property
    def initial_position(self) -> int:
        """Return the stream's start position: 0 unless the channel has a term id and offset."""
        initial, term_id = self._id("init-term-id"), self._id("term-id")
        offset = self._size("term-offset", 0)
        given = [name for name in _START if name in self.parameters]
        if initial is None or term_id is None or len(given) != len(_START):
            if given:
                raise ValueError(f"expected all of {', '.join(_START)}, found {', '.join(given)}")
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
        if not host or not _PORT.fullmatch(port) or not 0 < int(port) < 65536:
            raise ValueError(f"expected {name}=HOST:PORT with a port from 1 to 65535")
        return host, int(port)

    def _size(self, name: str, default: int) -> int:
        text = self.parameters.get(name)
        if text is None:
            return default
        match = _SIZE.fullmatch(text)
        size_bytes = int(match[1]) * _SCALE[match[2].lower()] if match else -1
        if not 0 <= size_bytes <= SIZE_MAX:
            raise ValueError(
                f"{name}={shown(text)}: expected a number of bytes, or a number followed by "
                f"k, m or g, at most {SIZE_MAX} bytes{_as_aeron_writes(text)}"
            )
        return size_bytes

    def _duration_ns(self, name: str) -> int | None:
        text = self.parameters.get(name)
        return None if text is None else parse_duration_ns(name, text)

    def _id(self, name: str) -> int | None:
        text = self.parameters.get(name)
        if text is None:
            return None
        if not _ID.fullmatch(text) or not -(1 << 31) <= int(text) < 1 << 31:
            raise ValueError(f"{name}={shown(text)}: expected a signed 32-bit integer")
        return int(text)

    def _flag(self, name: str, default: bool) -> bool:
        text = self.parameters.get(name)
        if text not in (None, "true", "false"):
            raise ValueError(f"{name}={shown(text)}: expected true or false")
        return default if text is None else text == "true"


_START = ("init-term-id", "term-id", "term-offset")
_PROPERTIES = (
    *("ports", "term_length", "mtu", "reliable", "receiver_window_bytes", "initial_position"),
    *("flow_control", "group_tag", "session_id", "nak_delay_ns", "send_buffer_bytes"),
    *("publication_window_bytes", "signals_end", "receive_buffer_bytes", "linger_ns"),
    *("nak_all_gaps", "retransmit_ranges", "gap_fill_datagrams", "gap_fill_delay_ns"),
)
"""Channel properties that parse its parameters."""


def parse_channel(text: str) -> Channel:
    """Parse an `aeron:udp` channel. Raises ValueError if the channel is invalid."""
    if not text.startswith(_PREFIX):
        raise ValueError(f"expected a channel that starts with {_PREFIX}, found {shown(text)!r}")
    parameters: dict[str, str] = {}
    for part in text.removeprefix(_PREFIX).split("|"):
        name, equals, value = part.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"expected name=value, found {shown(part)!r}")
        if name in parameters:
            raise ValueError(f"parameter {shown(name)} occurs twice: remove one of them")
        parameters[name] = value
    return Channel(parameters)


def _as_aeron_writes(text: str) -> str:
    """Return a hint if a size is written as in other keys of a scenario."""
    match = _SCENARIO_SIZE.fullmatch(text)
    return f"; in a channel, write {match[1]}{match[2].lower()}" if match else ""


def parse_duration_ns(name: str, text: str) -> int:
    """Parse the duration of a parameter or a driver setting. Raises ValueError if it is invalid."""
    match = _DURATION.fullmatch(text)
    duration_ns = int(match[1]) * _NANOSECONDS[match[2]] if match else -1
    if not 0 <= duration_ns <= DURATION_NS_MAX:
        raise ValueError(
            f"{name}={shown(text)}: expected a number followed by ns, us, ms or s, at "
            f"most {format_duration(DURATION_NS_MAX)}"
        )
    return duration_ns


def with_parameters(text: str, parameters: Mapping[str, str]) -> str:
    """Return a channel with additional parameters. Existing parameters with the same names are
    replaced.
    """
    prefix, mark, rest = text.partition("?")
    kept = [part for part in rest.split("|") if part.partition("=")[0] not in parameters]
    return prefix + mark + "|".join([*kept, *(f"{name}={parameters[name]}" for name in parameters)])


def check_parameters(channel: Channel) -> None:
    """Raise ValueError if a channel has a parameter that Aeron does not have."""
    for name in channel.parameters:
        if name not in PARAMETERS:
            hint = f"the parameters are {', '.join(PARAMETERS)}"
            raise ValueError(unknown_name("a channel parameter", name, PARAMETERS, hint))


def check_window(channel: Channel) -> None:
    """Raise ValueError if a subscriber's window exceeds its receive buffer, because Aeron rejects
    such a channel.
    """
    buffer, window = channel.receive_buffer_bytes, channel.receiver_window_bytes
    found = channel.parameters.get("rcv-wnd", f"{WINDOW_BYTES} (the default)")
    if (window or WINDOW_BYTES) > buffer:
        text = f"rcv-wnd={shown(found)}: expected at most {buffer} bytes, the receive buffer: "
        text += f"add so-rcvbuf={window or WINDOW_BYTES}, or use a smaller rcv-wnd"
        raise ValueError(text)


def read_all(channel: Channel) -> None:
    """Read every parameter that the harness uses. Raises ValueError for an invalid parameter."""
    for name in _PROPERTIES:
        getattr(channel, name)


def placeholders(text: str) -> list[str]:
    """Return the host names in a channel's placeholders, such as `b` for `${b}`."""
    return PLACEHOLDER.findall(text)


def fill_in(text: str, addresses: Mapping[str, str]) -> str:
    """Replace the placeholders in a channel with the hosts' addresses."""
    return PLACEHOLDER.sub(lambda match: addresses[match[1]], text)
