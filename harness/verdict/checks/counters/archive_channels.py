"""The channels with which an archive, and a subscriber that merges, use streams.

    scenario   aeron:udp?endpoint=b:24330|nak-delay=1ms|cc=cubic|rcv-wnd=16384
    archive    aeron:udp?endpoint=b:24330|cc=cubic|rcv-wnd=16k
    replay     aeron:udp?endpoint=b:24335|mtu=1408|term-length=64k|init-term-id=7|term-id=7|...

An archive subscribes and publishes with a channel of some parameters only, in an order of its own,
with sizes in their shortest exact form. A replay's channel also has the recording's parameters, and
a time to linger. Source: archive-protocol 3.1, 5.8, Aeron 1.53.
"""

from collections.abc import Mapping

from windtunnel.harness.dissect.frames.flow import wrap_i32
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.scenario.schema.channel import Channel, parse_channel
from windtunnel.harness.verdict.core.wire import Wire

_OF_RECORDING = ("mtu", "term-length", "init-term-id", "term-id", "term-offset")
_BEFORE = ("tags", "endpoint", "interface", "control", "control-mode")
_AFTER = (
    *("alias", "cc", "fc", "gtag", "tether", "group", "rejoin", "so-sndbuf", "so-rcvbuf"),
    *("rcv-wnd", "media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset"),
    *("response-endpoint", "response-correlation-id", "stream-id"),
)
_ORDER = (*_BEFORE, *_OF_RECORDING, "session-id", "ttl", *_AFTER)
_SIZES = frozenset({"mtu", "term-length", "so-sndbuf", "so-rcvbuf", "rcv-wnd"})
_KEPT = frozenset(_ORDER) - frozenset(_OF_RECORDING)


def subscribed_channels(traffic: TrafficCase, session_id: int) -> tuple[str, ...]:
    """Return the channels of the subscriptions to a stream at its subscriber's host."""
    if traffic.merges is not None:
        merging = f"aeron:udp?control-mode=manual|session-id={session_id}"
        return stored_channel(traffic.receive), merging
    if traffic.recorded == traffic.to_host:
        return traffic.receive, stored_channel(traffic.receive)
    return (traffic.receive,)


def published_channel(traffic: TrafficCase, wire: Wire) -> str:
    """Return the channel of a stream's publication. That of a replay ends before its time to
    linger, which depends on settings of the archive, or before the place where it begins, if that
    is not known.
    """
    if not traffic.replays:
        return traffic.channel
    facts = wire.facts
    added = {
        "mtu": facts.mtu,
        "term-length": facts.term_length,
        "init-term-id": facts.initial_term_id,
    }
    if len(wire.sent.starts):
        first = wire.sent.starts.min(keepdims=True)
        terms = wrap_i32(first // facts.term_length + facts.initial_term_id)
        added |= {"term-id": int(terms[0]), "term-offset": int(first[0]) % facts.term_length}
    last = _ORDER.index("ttl")
    return _text(parse_channel(traffic.channel), added, _ORDER[: last + 1])


def stored_channel(channel: str) -> str:
    """Return a channel as an archive stores it and subscribes with it."""
    return _text(parse_channel(channel), {}, _ORDER)


def _text(given: Channel, added: Mapping[str, int], order: tuple[str, ...]) -> str:
    values: dict[str, str | int | None] = {
        name: value for name, value in given.parameters.items() if name in _KEPT
    }
    for name, size in (
        ("rcv-wnd", given.receiver_window_bytes),
        ("so-sndbuf", given.send_buffer_bytes),
        ("so-rcvbuf", given.receive_buffer_bytes),
    ):
        if name in values:
            values[name] = size
    values |= added
    shown = (f"{name}={_value(name, values[name])}" for name in order if name in values)
    return "aeron:udp?" + "|".join(shown)


def _value(name: str, value: str | int | None) -> str:
    if name in _SIZES and isinstance(value, int):
        for power, suffix in ((30, "g"), (20, "m"), (10, "k")):
            if value and value % (1 << power) == 0:
                return f"{value >> power}{suffix}"
    return str(value)
