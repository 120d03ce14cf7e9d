"""Compares each kind of evidence of two runs, host by host.

A function yields the first difference of each host, file or counter, with its time where the
evidence has times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from windtunnel.harness.artifact.host import counter_sample, delivery, frame_seen, log_index, offer
from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME, OFFER_TIME
from windtunnel.harness.artifact.records import Records, read_records
from windtunnel.harness.artifact.regular_file import map_bytes, read_text
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import HostDir, RunDir
from windtunnel.harness.dissect.driver_files.loss_report import read_loss_report
from windtunnel.harness.exam.packet_difference import first_packet_difference
from windtunnel.harness.exam.record_difference import (
    ABSENT,
    Found,
    byte_differences,
    record_differences,
    times_of,
)
from windtunnel.harness.scenario.resolved.case import Case

_PART = 160
Compare = Callable[[RunDir, RunDir, Case], Iterator[Found]]


def _datagrams(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        files = sound.capture(host.name), other.capture(host.name)
        if all(each.exists() for each in files):
            pair = first_packet_difference(*files)
            if pair:
                yield Found(f"host {host.name}", pair.time_ns, pair.first, pair.second)


def _samples(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        pair = _both(sound, other, host.name)
        records = [
            read_records(each.counter_samples, counter_sample.COUNTER_SAMPLE) for each in pair
        ]
        labels = {
            (each.counter_id, each.registration_id): each.label
            for files in pair
            for each in counter_sample.read_counters(files.counters) or []
        }

        def text(row: Any, labels: dict[tuple[int, int], str] = labels) -> str:
            key = int(row["counter_id"]), int(row["registration_id"])
            return f"{labels.get(key, f'counter {key[0]}')} = {row['value']}"

        yield from record_differences(
            f"host {host.name}", records, text, [times_of(each) for each in records]
        )


def _offers(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    def text(row: Any) -> str:
        return f"message {row['message_index']} of {row['length']} bytes up to {row['position']}"

    for place, one, two in _traffic(sound, other, case):
        files = [folder.publisher(traffic) for folder, traffic in (one, two)]
        records = [read_records(each.offers, offer.OFFER) for each in files]
        yield from _timed(place, records, text, OFFER_TIME, [each.times for each in files])


def _deliveries(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    def text(row: Any) -> str:
        return f"a message of {row['length']} bytes up to position {row['position']}"

    for place, one, two in _traffic(sound, other, case):
        files = [folder.subscriber(traffic) for folder, traffic in (one, two)]
        records = [read_records(each.index, delivery.DELIVERY) for each in files]
        yield from _timed(place, records, text, DELIVERY_TIME, [each.times for each in files])


def _messages(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for place, one, two in _traffic(sound, other, case):
        files = [each[0].subscriber(each[1]).messages for each in (one, two)]
        yield from byte_differences(place, *files)


def _frames(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    def text(row: Any) -> str:
        header = frame_seen.headers(np.array([row], frame_seen.FRAME_SEEN))[0]
        return (
            f"a frame at {row['position']} with type {header['type']}, "
            f"frame_length {header['frame_length']}, flags {header['flags']:#x}"
        )

    for place, one, two in _traffic(sound, other, case):
        files = [each[0].subscriber(each[1]).frames for each in (one, two)]
        records = [read_records(each, frame_seen.FRAME_SEEN) for each in files]
        yield from record_differences(place, records, text, [times_of(each) for each in records])


def _final_counters(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        pair = [
            {
                (each.counter_id, each.registration_id): each
                for each in counter_sample.read_counters(files.counters) or []
            }
            for files in _both(sound, other, host.name)
        ]
        for key in sorted({*pair[0], *pair[1]}):
            one, two = (each.get(key) for each in pair)
            if one != two:
                texts = [
                    f"{each.label} = {each.final_value}" if each else ABSENT for each in (one, two)
                ]
                if one and two and texts[0] == texts[1]:
                    texts = [str(one), str(two)]
                yield Found(f"host {host.name}", None, texts[0], texts[1])
                break


def _logs(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        pair = _both(sound, other, host.name)
        listed = {
            (each.folder, each.registration_id)
            for files in pair
            for each in log_index.read_log_index(files.log_index) or []
        }
        for key in sorted(listed):
            yield from byte_differences(
                f"host {host.name}, {key[0]}/{key[1]}", *(each.log_buffer(*key) for each in pair)
            )


def _losses(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        files = [each.loss_report for each in _both(sound, other, host.name)]
        reports = [read_loss_report(map_bytes(each)) if each.exists() else None for each in files]
        pairs = zip_longest(
            *([str(loss) for loss in each.losses] if each else [] for each in reports)
        )
        one, two = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
        if one != two:
            yield Found(f"host {host.name}", None, one or ABSENT, two or ABSENT)


def _documents(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    """Compare what applications report about themselves, such as offers refused."""
    for place, one, two in _traffic(sound, other, case):
        for role in ("publisher", "subscriber"):
            files = [getattr(folder, role)(name).document for folder, name in (one, two)]
            yield from _differing_texts(f"{place}, {role}", *files)


def _errors(sound: RunDir, other: RunDir, case: Case) -> Iterator[Found]:
    for host in case.hosts:
        files = [each.cnc_errors for each in _both(sound, other, host.name)]
        yield from _differing_texts(f"host {host.name}", *files)


def _ends(sound: RunDir, other: RunDir, _case: Case) -> Iterator[Found]:
    ends = []
    for each in (Simulation.read(sound.simulation), Simulation.read(other.simulation)):
        overran = [("the run", f"ended early: {each.overran}")] if each and each.overran else []
        exits = [
            (end.name, f"exit code {end.exit_code} {end.last_log_line}".rstrip())
            for end in (each.exits if each else ())
        ]
        ends.append(dict([*overran, *exits]))
    for name in dict.fromkeys([*ends[0], *ends[1]]):
        one, two = (each.get(name, ABSENT) for each in ends)
        if one != two:
            yield Found(name, None, one, two)


def _digests(sound: RunDir, other: RunDir, _case: Case) -> Iterator[Found]:
    """Compare every counter change, also between two samples."""
    one, two = (Simulation.read(each.simulation) for each in (sound, other))
    texts = [
        f"{each.digest} of {each.changes} counter changes" if each else ABSENT
        for each in (one, two)
    ]
    if texts[0] != texts[1]:
        yield Found("all hosts", None, texts[0], texts[1])


def _both(sound: RunDir, other: RunDir, host: str) -> tuple[HostDir, HostDir]:
    return sound.host(host), other.host(host)


def _traffic(
    sound: RunDir, other: RunDir, case: Case
) -> Iterator[tuple[str, tuple[HostDir, str], tuple[HostDir, str]]]:
    for host in case.hosts:
        one, two = _both(sound, other, host.name)
        for traffic in case.traffic:
            yield f"host {host.name}, traffic {traffic.id}", (one, traffic.id), (two, traffic.id)


def _timed(
    place: str,
    records: list[Records | None],
    text: Callable[[Any], str],
    layout: np.dtype[Any],
    files: list[Path],
) -> Iterator[Found]:
    """Compare records, whose times are in the files."""
    times = [times_of(read_records(each, layout)) for each in files]
    yield from record_differences(place, records, text, times)


def _differing_texts(place: str, one: Path, two: Path) -> Iterator[Found]:
    texts = [_text(each) for each in (one, two)]
    if texts[0] != texts[1]:
        yield Found(place, None, *_differing_part(texts[0], texts[1]))


def _text(path: Path) -> str:
    return " ".join(read_text(path).split()) if path.exists() else ABSENT


def _differing_part(one: str, two: str) -> tuple[str, str]:
    """Return both texts from the word with the first difference on, shortened."""
    pairs = enumerate(zip(one, two, strict=False))
    start = next((at for at, (left, right) in pairs if left != right), min(len(one), len(two)))
    start = one.rfind(", ", 0, start) + 1
    return one[start : start + _PART].strip(), two[start : start + _PART].strip()


KINDS: dict[str, Compare] = {
    "datagrams": _datagrams,
    "counter": _samples,
    "offers": _offers,
    "deliveries": _deliveries,
    "frames read": _frames,
    "ends of processes": _ends,
    "errors": _errors,
    "loss report": _losses,
    "applications": _documents,
    "final counter": _final_counters,
    "messages": _messages,
    "log buffers": _logs,
    "digest": _digests,
}
"""Kinds of evidence in the order of their weight if they differ at the same time."""
