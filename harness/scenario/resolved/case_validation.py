"""Validates a case.json that was read from a file: finds values that no resolved scenario has.

A case that `resolve` made is valid. A file may come from an untrusted run folder, and the judge,
the reports and the relay use its hosts, links and streams as indices and compute with its lengths.
"""

import ipaddress
from collections.abc import Iterator, Sequence

from windtunnel.harness.scenario.resolved.fault_case import FaultCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.traffic_case import TrafficCase
from windtunnel.harness.scenario.schema.channel import (
    ALIGNMENT,
    HEADER_LENGTH,
    MTU_MAX,
    TERM_LENGTH_MAX,
    TERM_LENGTH_MIN,
    parse_channel,
    read_all,
)
from windtunnel.harness.scenario.schema.network import HOSTS_MAX
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.table import CHANNEL_LENGTH_MAX
from windtunnel.harness.scenario.schema.traffic import PATHS_MAX
from windtunnel.harness.scenario.schema.units import BILLION, BYTES_MAX, DURATION_NS_MAX
from windtunnel.harness.scenario.validation.traffic_validation import (
    MESSAGES_MAX,
    content_count,
    longest_message,
)

PORT_MAX = 65_535
POSITION_MAX = TERM_LENGTH_MAX << 31
"""Maximum end position of a stream."""
CHANNELS_MAX = 2 * HOSTS_MAX + PATHS_MAX * (HOSTS_MAX + 1) + 3
"""Maximum number of channels of a stream: its hosts' channels and sources, its destinations, and
three others.
"""
_PROBABILITY_COUNTS = {"independent": 0, "two states": 4, "four states": 5}
_LOSS_COUNTS = {"iid": 1, "gilbert-elliott": 4, "four-state": 5}


def is_address(text: str) -> bool:
    """Return whether a string is an IPv4 address."""
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def traffic_problems(
    traffic: TrafficCase, path: Path, hosts: Sequence[str], stream_count: int
) -> Iterator[Problem]:
    """Yield a problem for each invalid value of a stream in a case with `stream_count` streams."""
    for name, least, most in (
        ("ordinal", 0, stream_count - 1),
        ("stream_id", -(1 << 31), (1 << 31) - 1),
        ("port", 1, PORT_MAX),
        ("initial_position", 0, POSITION_MAX),
        ("total_bytes", 1, BYTES_MAX),
        ("close_after_ns", 0, DURATION_NS_MAX),
        ("starts_with", 0, len(traffic.subscribers)),
    ):
        yield from within(path, name, getattr(traffic, name), least, most)
    for optional, least in (("initial_term_id", -(1 << 31)), ("receiver_window_bytes", 1)):
        if (value := getattr(traffic, optional)) is not None:
            yield from within(path, optional, value, least, (1 << 31) - 1)
    for port in traffic.ports:
        yield from within(path, "ports", port, 1, PORT_MAX)
    named = (traffic.from_host, traffic.to_host, *traffic.from_hosts, *traffic.to_hosts)
    archives = [each for each in (traffic.recorded, traffic.replicated) if each]
    yield from known_names(path, (*named, *traffic.partial, *archives), hosts)
    yield from _geometry(traffic, path)
    yield from _channels(traffic, path)
    for key, pace in (("pace", traffic.pace), ("consume", traffic.consume)):
        for name, value in pace:
            yield from within((*path, key), name, value, 0, max(BYTES_MAX, DURATION_NS_MAX))
    if traffic.merges is not None:
        yield from within((*path, "merges"), "after_bytes", traffic.merges.after_bytes, 1,
                           BYTES_MAX)  # fmt: skip
        yield from within((*path, "merges"), "port", traffic.merges.port, 1, PORT_MAX)


def _channels(traffic: TrafficCase, path: Path) -> Iterator[Problem]:
    texts = [traffic.channel, traffic.receive, *traffic.destinations]
    texts += [each for _, each in (*traffic.channels, *traffic.receives, *traffic.sources)]
    if traffic.merges is not None:
        texts.append(traffic.merges.live)
    if len(texts) > CHANNELS_MAX:
        yield Problem(path, f"expected at most {CHANNELS_MAX} channels, found {len(texts)}")
    for text in texts[:CHANNELS_MAX]:
        if len(text) > CHANNEL_LENGTH_MAX:
            yield Problem(path, f"expected at most {CHANNEL_LENGTH_MAX} characters per channel")
            continue
        try:
            read_all(parse_channel(text))
        except ValueError as error:
            yield Problem((*path, "channel"), str(error))


def _geometry(traffic: TrafficCase, path: Path) -> Iterator[Problem]:
    term, mtu = traffic.term_length, traffic.mtu
    if not TERM_LENGTH_MIN <= term <= TERM_LENGTH_MAX or term & (term - 1):
        text = f"expected a power of two from {TERM_LENGTH_MIN} to {TERM_LENGTH_MAX}, found {term}"
        yield Problem((*path, "term_length"), text)
        return
    if not HEADER_LENGTH < mtu <= MTU_MAX or mtu % ALIGNMENT:
        text = f"expected a multiple of 32 from 64 to {MTU_MAX}, found {mtu}"
        yield Problem((*path, "mtu"), text)
    if traffic.initial_position % ALIGNMENT:
        text = f"expected a multiple of 32, found {traffic.initial_position}"
        yield Problem((*path, "initial_position"), text)
    shortest, longest = traffic.shortest_bytes, traffic.longest_bytes
    most = longest_message(term)
    if not 1 <= shortest <= longest <= most:
        text = f"expected 1 <= shortest <= longest <= {most}, found {shortest} and {longest}"
        yield Problem((*path, "longest_bytes"), text)
        return
    if content_count(min(traffic.total_bytes, BYTES_MAX), shortest, longest) > MESSAGES_MAX:
        text = f"expected at most {MESSAGES_MAX} messages, found more"
        yield Problem((*path, "total_bytes"), text)


def fault_problems(
    fault: FaultCase, path: Path, links: Sequence[str], stream_count: int
) -> Iterator[Problem]:
    """Yield a problem for each invalid value of a fault rule in a case.

    `links` contains the names of the link directions.
    """
    yield from known_names((*path, "links"), fault.links, links)
    for name, most in (
        ("share_ppb", BILLION),
        ("hold_ns", DURATION_NS_MAX),
        ("session", 255),
        ("flags_mask", 255),
        ("flags_value", 255),
        ("ending_value", BYTES_MAX),
        ("copies", 4),
        ("bits", 8),
        ("cut_to_bytes", BYTES_MAX),
        ("source_port", PORT_MAX),
    ):
        yield from within(path, name, getattr(fault, name), 0, most)
    for ordinal in fault.ordinals:
        yield from within(path, "ordinals", ordinal, 0, stream_count - 1)
    yield from _shares(path, "chance_ppb", fault.chance_ppb, _PROBABILITY_COUNTS[fault.chance])
    place = fault.place
    for name, least, value in (
        ("start", 0, place.start),
        ("length", 1, place.length),
        ("every", 0, place.every),
    ):
        yield from within((*path, "place"), name, value, least, BYTES_MAX)
    for start, length in place.ranges:
        yield from within((*path, "place"), "ranges", start, 0, BYTES_MAX)
        yield from within((*path, "place"), "ranges", length, 1, BYTES_MAX)
    for key, counted in (("order", fault.order), ("attempt", fault.attempt)):
        for name, value in counted:
            yield from within((*path, key), name, value, 1, (1 << 31) - 1)
    when = fault.when
    if when is None:
        return
    for name in ("after_ns", "for_ns", "every_ns"):
        yield from within((*path, "when"), name, getattr(when, name), 0, DURATION_NS_MAX)
    for reached in (when.reached, when.until):
        if reached is not None:
            yield from within((*path, "when"), "ordinal", reached.ordinal, 0, stream_count - 1)
            yield from within((*path, "when"), "position", reached.position, 0, BYTES_MAX)


def impairment_problems(
    impairment: ImpairmentCase, path: Path, links: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each invalid value in a link direction's impairments."""
    yield from known_names((*path, "link"), [impairment.link], links)
    loss = impairment.loss
    if loss is not None:
        yield from _shares((*path, "loss"), "shares_ppb", loss.shares_ppb, _LOSS_COUNTS[loss.model])
    for name in ("duplicate_ppb", "corrupt_ppb", "reorder_ppb"):
        yield from within(path, name, getattr(impairment, name), 0, BILLION)
    for name in ("delay_ns", "jitter_ns"):
        yield from within(path, name, getattr(impairment, name), 0, DURATION_NS_MAX)
    for name in ("rate_bits_per_s", "queue_packets", "reorder_gap"):
        yield from within(path, name, getattr(impairment, name), 0, BYTES_MAX)


def _shares(path: Path, name: str, shares: Sequence[int], count: int) -> Iterator[Problem]:
    if len(shares) != count:
        yield Problem((*path, name), f"expected {count} shares, found {len(shares)}")
    for share in shares:
        yield from within(path, name, share, 0, BILLION)


def within(path: Path, name: str, value: int, least: int, most: int) -> Iterator[Problem]:
    """Yield a problem if a value is less than `least` or greater than `most`."""
    if not least <= value <= most:
        yield Problem((*path, name), f"expected {least} to {most}, found {value}")


def known_names(path: Path, names: Sequence[str], known: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each name that is not in `known`."""
    for name in names:
        if name not in known:
            yield Problem(path, f"expected one of {', '.join(known)}, found {name[:80]!r}")
