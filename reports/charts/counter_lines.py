"""Chart lines that show positions over time, from the drivers' counters.

    snd-lmt  ..............----------     sender limit: end of the receiver window
    pub-lmt  ........--------             publication limit
    snd-pos  ....------                   sent
    rcv-hwm  ...-----                     highest byte received
    rcv-pos  ..----                       received without a gap
    sub-pos  .---                         consumed by the subscriber, or the slowest of several

The sampler writes a sample when a value has changed since its last poll. A value therefore holds
until one polling interval before the next sample, and changes within that interval. Accordingly, a
line is horizontal until then, and slopes straight to the next sample. Both hosts share one clock
but are polled at slightly different times. The sloped segments avoid jumps in the distance between
the hosts' lines.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.counter_sample import (
    CounterFacts,
    read_counters,
    read_samples,
)
from windtunnel.harness.artifact.records import Records
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.dissect.driver_files import counter_key

Times = NDArray[np.int64]
Positions = NDArray[np.int64]

SENDER_COUNTERS: dict[int, str] = {1: "pub-lmt", 9: "snd-lmt", 2: "snd-pos"}
RECEIVER_COUNTERS: dict[int, str] = {3: "rcv-hwm", 5: "rcv-pos", 4: "sub-pos"}
"""The type ids of a receiver's counters. Source: section 8.2 of Aeron's specification."""
SUBSCRIBER_POSITION = 4
"""Type id of sub-pos. Each subscription has one of each image, which its reference id names."""

_KEY_SESSION_ID, _KEY_STREAM_ID = slice(8, 12), slice(12, 16)


@dataclass(frozen=True)
class Line:
    """A chart line: one quantity over time."""

    name: str
    time_ns: Times
    value: Positions


def stream_lines(
    host: HostDir,
    stream_id: int,
    session_id: int | None,
    names: dict[int, str],
    port: int | None = None,
) -> list[Line]:
    """Return the chart lines of a stream, or of one of its sessions, from one host's counters, in
    the order of `names`. Of publications, the port to which they send can be given.
    """
    samples = read_samples(host.counter_samples)
    counters = read_counters(host.counters)
    if samples is None or counters is None:
        return []
    interval_ns = sampling_interval_ns(samples)
    lines = []
    for type_id, name in names.items():
        mine = [
            each
            for each in counters
            if each.type_id == type_id
            and _key_i32(each, _KEY_STREAM_ID) == stream_id
            and session_id in (None, _key_i32(each, _KEY_SESSION_ID))
        ]
        by_image: dict[int, list[CounterFacts]] = {}
        for each in counter_key.to_port(mine, port):
            image = 0
            if type_id == SUBSCRIBER_POSITION:
                image = each.reference_id or -each.registration_id
            by_image.setdefault(image, []).append(each)
        found = [_slowest(name, samples, each) for each in by_image.values()]
        if any(len(each.time_ns) for each in found):
            lines.append(with_plateaus(_joined(name, found), interval_ns))
    return lines


def sampling_interval_ns(samples: Records) -> int:
    """Estimate the counter sampler's polling interval from the times of its samples.

    A poll that finds no change writes no sample, so only short intervals are reliable. The shortest
    intervals follow late polls. The 10th percentile excludes them.
    """
    polls = np.unique(samples["time_ns"])
    return int(np.quantile(np.diff(polls), 0.1)) if len(polls) > 2 else 0


def with_plateaus(line: Line, interval_ns: int) -> Line:
    """Add points to a line so that it stays level until shortly before each change."""
    ends = line.time_ns[1:] - interval_ns
    paused = ends > line.time_ns[:-1] + interval_ns // 2
    after = np.flatnonzero(paused) + 1
    return Line(
        line.name,
        np.insert(line.time_ns, after, ends[paused]),
        np.insert(line.value, after, line.value[:-1][paused]),
    )


def _key_i32(counter: CounterFacts, place: slice) -> int | None:
    key = bytes.fromhex(counter.key_hex)[place]
    return int.from_bytes(key, "little", signed=True) if len(key) == 4 else None


def _samples_of(samples: Records, counters: list[CounterFacts]) -> Records:
    """Return the samples of the given counters. Registration ids distinguish reused counter ids."""
    chosen = np.zeros(len(samples), dtype=np.bool_)
    for counter in counters:
        chosen |= (samples["counter_id"] == counter.counter_id) & (
            samples["registration_id"] == counter.registration_id
        )
    picked: Records = samples[chosen]
    return picked[np.argsort(picked["time_ns"], kind="stable")]


def _slowest(name: str, samples: Records, counters: list[CounterFacts]) -> Line:
    """Return the samples of the given counters as a line. Of several subscriptions of one image,
    that is the position of the slowest one.
    """
    picked = _samples_of(samples, counters)
    if not len(picked) or not _is_subscriber(counters):
        return Line(name, picked["time_ns"].copy(), picked["value"].copy())
    times_ns = np.unique(picked["time_ns"])
    slowest = np.full(len(times_ns), np.iinfo(np.int64).max)
    for counter in counters:
        own = _samples_of(samples, [counter])
        at = np.searchsorted(own["time_ns"], times_ns, side="right") - 1
        slowest[at >= 0] = np.minimum(slowest[at >= 0], own["value"][at[at >= 0]])
    return Line(name, times_ns, slowest)


def _is_subscriber(counters: list[CounterFacts]) -> bool:
    return len(counters) > 1 and counters[0].type_id == SUBSCRIBER_POSITION


def _joined(name: str, lines: list[Line]) -> Line:
    """Return the points of several lines as one line, by time."""
    time_ns = np.concatenate([each.time_ns for each in lines])
    value = np.concatenate([each.value for each in lines])
    order = np.argsort(time_ns, kind="stable")
    return Line(name, time_ns[order], value[order])


def value_at(line: Line, time_ns: Times) -> Positions:
    """Return a line's values at the given times. Before its first point and after its last point,
    the line is level.
    """
    begin = line.time_ns[0]
    values = np.interp(time_ns - begin, line.time_ns - begin, line.value)
    whole: Positions = np.rint(values).astype(np.int64)
    return whole


def difference(name: str, upper: Line, lower: Line) -> Line:
    """Return the difference between two lines at the points of either line, from the time when both
    lines have begun.

    The difference is 0 where the lower line is ahead because the hosts were polled at different
    times.
    """
    begin = max(int(upper.time_ns[0]), int(lower.time_ns[0]))
    time_ns = np.union1d(upper.time_ns, lower.time_ns)
    time_ns = time_ns[time_ns >= begin]
    apart = value_at(upper, time_ns) - value_at(lower, time_ns)
    return Line(name, time_ns, np.maximum(apart, 0))


DISTANCES: tuple[tuple[str, str, str], ...] = (
    ("window left", "snd-lmt", "snd-pos"),
    ("unread", "rcv-pos", "sub-pos"),
    ("in flight", "snd-pos", "rcv-pos"),
    ("gap", "rcv-hwm", "rcv-pos"),
)
"""The distances to draw between lines that are close together: name, upper line, lower line.

The last one is drawn on top."""


def distances(lines: list[Line]) -> list[Line]:
    """Return one line for each pair in DISTANCES whose two lines exist: the difference between them
    over time.
    """
    by_name = {line.name: line for line in lines}
    return [
        difference(name, by_name[upper], by_name[lower])
        for name, upper, lower in DISTANCES
        if upper in by_name and lower in by_name
    ]
