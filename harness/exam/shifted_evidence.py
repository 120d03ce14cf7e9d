"""Determines whether two simulated runs differ only in times, and by how much at most.

    sound run    --+--> equal datagrams per flow, records, counters, logs, ... --> largest shift
    mutant's run --+    anything else                                          --> None

A defect can make a turn of an agent longer or shorter. Then the same datagrams leave in the same
order, and applications read the same frames, but microseconds sooner or later. No promise of the
protocol is that precise: threads are late by more than that on each machine.

A counter's samples are taken at fixed times, so a change that happens later may be missing in one
sample. Each value must then be between those of the other run's previous and next samples.
Durations may differ by as much as times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host import counter_sample, delivery, frame_seen, offer
from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME, OFFER_TIME
from windtunnel.harness.artifact.records import Records, read_records
from windtunnel.harness.artifact.regular_file import map_bytes
from windtunnel.harness.artifact.run_dir import HostDir, RunDir
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.driver_files.loss_report import Loss, read_loss_report
from windtunnel.harness.exam.evidence_kinds import KINDS
from windtunnel.harness.exam.packet_difference import packets
from windtunnel.harness.scenario.resolved.case import Case

SHIFT_MAX_NS = 100_000
"""A larger shift is an effect like any other. It is a step of the simulated applications, and a
tenth of the shortest interval that a check of times distinguishes from a sound driver's.
"""
DURATIONS = frozenset(
    {counter_key.SENDER_ROUND_TRIP_TIME, counter_key.OLDEST_GAP, counter_key.REPAIR_TIME}
)
"""Types of counters with nanoseconds between two events, each of which may be shifted."""
UNTIMED = ("ends of processes", "errors", "applications", "final counter", "messages")
_LOGS = "log buffers"
_ADDRESSES = slice(26, 38)
"""Of an Ethernet frame: both IPv4 addresses and ports."""
_NS_PER_MS = 1_000_000
_Shifts = Iterator[int | None]
"""The largest shift of each file in nanoseconds, or None if it differs otherwise."""


def largest_shift_ns(sound: RunDir, other: RunDir) -> int | None:
    """Return the largest difference between the times of equal events in two runs. None if the
    runs also differ in something else.
    """
    case = Case.read(sound.case)
    for kind in (*UNTIMED, _LOGS):
        if next(KINDS[kind](sound, other, case), None) is not None:
            return None
    largest = 0
    for shift_ns in _shifts(sound, other, case):
        if shift_ns is None:
            return None
        largest = max(largest, shift_ns)
    return largest


def _shifts(sound: RunDir, other: RunDir, case: Case) -> _Shifts:
    for host in case.hosts:
        yield _shift_of_captures(sound.capture(host.name), other.capture(host.name))
        one, two = sound.host(host.name), other.host(host.name)
        yield _shift_of_losses(one, two)
        yield _shift_of_samples(one, two)
        for traffic in case.traffic:
            publishers = [each.publisher(traffic.id) for each in (one, two)]
            subscribers = [each.subscriber(traffic.id) for each in (one, two)]
            for layout, times, files in (
                (offer.OFFER, OFFER_TIME, [(each.offers, each.times) for each in publishers]),
                (
                    delivery.DELIVERY,
                    DELIVERY_TIME,
                    [(each.index, each.times) for each in subscribers],
                ),
            ):
                rows = [read_records(file, layout) for file, _ in files]
                at = [read_records(file, times) for _, file in files]
                yield _shift_of_records(rows[0], rows[1])
                yield _shift_of_records(at[0], at[1])
            frames = [read_records(each.frames, frame_seen.FRAME_SEEN) for each in subscribers]
            yield _shift_of_records(frames[0], frames[1])


def _shift_of_records(one: Records | None, two: Records | None) -> int | None:
    """Return the largest difference of the records' times if everything else is equal."""
    if one is None or two is None:
        return 0 if one is two else None
    if one.size != two.size:
        return None
    names = one.dtype.names or ()
    if any(name != "time_ns" and (one[name] != two[name]).any() for name in names):
        return None
    if "time_ns" not in names or not one.size:
        return 0
    return int(np.abs(one["time_ns"] - two["time_ns"]).max())


def _shift_of_captures(one: Path, two: Path) -> int | None:
    """Return the largest shift of a datagram if each flow has the same datagrams in the same
    order.
    """
    if not (one.exists() and two.exists()):
        return 0 if one.exists() == two.exists() else None
    flows = [_flows(map_bytes(each)) for each in (one, two)]
    if flows[0].keys() != flows[1].keys():
        return None
    largest = 0
    for addresses, sent in flows[0].items():
        found = flows[1][addresses]
        if [packet for _, packet in sent] != [packet for _, packet in found]:
            return None
        shifts = (abs(at - later) for (at, _), (later, _) in zip(sent, found, strict=True))
        largest = max(largest, *shifts)
    return largest


def _flows(capture: NDArray[np.uint8]) -> dict[bytes, list[tuple[int, bytes]]]:
    """Return the time and bytes of each packet, by the addresses of its flow."""
    found: dict[bytes, list[tuple[int, bytes]]] = {}
    for _, time_ns, start, end in packets(capture):
        packet = capture[start:end].tobytes()
        found.setdefault(packet[_ADDRESSES], []).append((time_ns, packet))
    return found


def _shift_of_losses(one: HostDir, two: HostDir) -> int | None:
    """Return the largest shift of a loss. The report's times are in milliseconds, so a shift of 1
    ms may be a very short one, which the captures show.
    """
    reports = [_losses(each.loss_report) for each in (one, two)]
    if len(reports[0]) != len(reports[1]):
        return None
    for loss, other in zip(*reports, strict=True):
        if replace(loss, first_ms=0, last_ms=0) != replace(other, first_ms=0, last_ms=0):
            return None
        shift_ms = max(abs(loss.first_ms - other.first_ms), abs(loss.last_ms - other.last_ms))
        if shift_ms > 1:
            return int(shift_ms * _NS_PER_MS)
    return 0


def _losses(file: Path) -> list[Loss]:
    return read_loss_report(map_bytes(file)).losses if file.exists() else []


def _shift_of_samples(one: HostDir, two: HostDir) -> int | None:
    """Return 0 if the counters of both runs pass through the same values at nearly the same time,
    else None.
    """
    files = [each.counter_samples for each in (one, two)]
    records = [read_records(each, counter_sample.COUNTER_SAMPLE) for each in files]
    if records[0] is None or records[1] is None:
        return 0 if records[0] is records[1] else None
    times_ns = np.union1d(records[0]["time_ns"], records[1]["time_ns"])
    first, second = _series(records[0], times_ns), _series(records[1], times_ns)
    if first.keys() != second.keys():
        return None
    for key, values in first.items():
        more = SHIFT_MAX_NS if key.type_id in DURATIONS else 0
        if not _is_between(values, second[key], more) or not _is_between(second[key], values, more):
            return None
    return 0


class _Counter(NamedTuple):
    counter_id: int
    type_id: int
    registration_id: int


def _series(samples: Records, times_ns: NDArray[np.int64]) -> dict[_Counter, NDArray[np.int64]]:
    """Return the values of each counter at all times: the last sampled value, or 0 before."""
    names = list(_Counter._fields)
    keys = np.ascontiguousarray(samples[names])
    found = {}
    for key in np.unique(keys):
        own = samples[keys == key]
        at = np.searchsorted(own["time_ns"], times_ns, side="right") - 1
        values = np.where(at >= 0, own["value"][np.maximum(at, 0)], 0)
        found[_Counter(*(int(key[name]) for name in names))] = values
    return found


def _is_between(values: NDArray[np.int64], others: NDArray[np.int64], more: int) -> bool:
    """Return whether each value is between the previous and the next one of the others, or beyond
    them by no `more` than that.
    """
    padded = np.concatenate([others[:1], others, others[-1:]])
    parts = np.stack([padded[:-2], padded[1:-1], padded[2:]])
    least, most = parts.min(axis=0) - more, parts.max(axis=0) + more
    return bool(((values >= least) & (values <= most)).all())
