"""Positions over time, as the drivers' counters told them.

    snd-lmt  ..............----------     how far the receiver's window lets the sender go
    pub-lmt  ........--------             how far the publisher may go
    snd-pos  ....------                   sent
    rcv-hwm  ...-----                     highest byte received
    rcv-pos  ..----                       received without a hole
    sub-pos  .---                         read by the subscriber

A sample is written when a value has changed since the last look, so a value is known to hold until
one interval of the sampler before the next sample, and to have moved within that interval. A line
is drawn so: level, then straight to the next sample. Both hosts share one clock, but are looked at
a little apart; straight stretches keep that from showing as leaps in the distance between hosts.
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

Times = NDArray[np.int64]
Positions = NDArray[np.int64]

SENDER_COUNTERS: dict[int, str] = {1: "pub-lmt", 9: "snd-lmt", 2: "snd-pos"}
RECEIVER_COUNTERS: dict[int, str] = {3: "rcv-hwm", 5: "rcv-pos", 4: "sub-pos"}
"""Aeron's counter type ids; the judge's own reading of the specification, section 8.2."""

_KEY_STREAM_ID = slice(12, 16)


@dataclass(frozen=True)
class Line:
    """One quantity over time."""

    name: str
    time_ns: Times
    value: Positions


def stream_lines(host: HostDir, stream_id: int, names: dict[int, str]) -> list[Line]:
    """The lines of a stream that one host's driver kept, in the order of `names`."""
    samples = read_samples(host.counter_samples)
    counters = read_counters(host.counters)
    if samples is None or counters is None:
        return []
    interval_ns = sampling_interval_ns(samples)
    lines = []
    for type_id, name in names.items():
        mine = [each for each in counters if each.type_id == type_id and _stream(each) == stream_id]
        picked = _picked(samples, mine)
        if len(picked):
            line = Line(name, picked["time_ns"].copy(), picked["value"].copy())
            lines.append(held(line, interval_ns))
    return lines


def sampling_interval_ns(samples: Records) -> int:
    """How long the sampler waited between two looks, judged by those that found a change.

    Many looks find none, so the short waits tell it; the very shortest are late looks catching up.
    """
    looks = np.unique(samples["time_ns"])
    return int(np.quantile(np.diff(looks), 0.1)) if len(looks) > 2 else 0


def held(line: Line, interval_ns: int) -> Line:
    """The line with one more point before each change that came after a pause."""
    ends = line.time_ns[1:] - interval_ns
    paused = ends > line.time_ns[:-1] + interval_ns // 2
    after = np.flatnonzero(paused) + 1
    return Line(
        line.name,
        np.insert(line.time_ns, after, ends[paused]),
        np.insert(line.value, after, line.value[:-1][paused]),
    )


def _stream(counter: CounterFacts) -> int | None:
    key = bytes.fromhex(counter.key_hex)[_KEY_STREAM_ID]
    return int.from_bytes(key, "little", signed=True) if len(key) == 4 else None


def _picked(samples: Records, counters: list[CounterFacts]) -> Records:
    """The samples of these counters; an id alone may have belonged to several in turn."""
    chosen = np.zeros(len(samples), dtype=np.bool_)
    for counter in counters:
        chosen |= (samples["counter_id"] == counter.counter_id) & (
            samples["registration_id"] == counter.registration_id
        )
    picked: Records = samples[chosen]
    return picked[np.argsort(picked["time_ns"], kind="stable")]


def value_at(line: Line, time_ns: Times) -> Positions:
    """The line's value at each time, level before its first point and after its last."""
    begin = line.time_ns[0]
    values = np.interp(time_ns - begin, line.time_ns - begin, line.value)
    whole: Positions = np.rint(values).astype(np.int64)
    return whole


def difference(name: str, upper: Line, lower: Line) -> Line:
    """How far one line is above another, wherever either of them has a point and both exist."""
    begin = max(int(upper.time_ns[0]), int(lower.time_ns[0]))
    time_ns = np.union1d(upper.time_ns, lower.time_ns)
    time_ns = time_ns[time_ns >= begin]
    return Line(name, time_ns, value_at(upper, time_ns) - value_at(lower, time_ns))


DISTANCES: tuple[tuple[str, str, str], ...] = (
    ("window left", "snd-lmt", "snd-pos"),
    ("unread", "rcv-pos", "sub-pos"),
    ("in flight", "snd-pos", "rcv-pos"),
    ("hole", "rcv-hwm", "rcv-pos"),
)
"""What a person wants to see of two lines that lie close together: name, upper, lower.

The last is drawn on top of the others."""


def distances(lines: list[Line]) -> list[Line]:
    """The distances between those lines that there are."""
    by_name = {line.name: line for line in lines}
    return [
        difference(name, by_name[upper], by_name[lower])
        for name, upper, lower in DISTANCES
        if upper in by_name and lower in by_name
    ]
