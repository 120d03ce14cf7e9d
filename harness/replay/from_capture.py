"""Converts one or two captures to a scenario file, with notes on what it does not reproduce.

FILE            one capture: outcomes are estimated from NAKs and retransmissions
FILE_A FILE_B   two captures: each frame is followed from one capture to the other
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windtunnel.harness.artifact.escaped_text import escaped
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.replay.capture_frames import CaptureError
from windtunnel.harness.replay.document import parse, text_of
from windtunnel.harness.replay.frame_outcome import DROP, infer_outcomes, repeatable
from windtunnel.harness.replay.observed import ObservedStream, document_of, have_equal_lengths
from windtunnel.harness.replay.observed_path import observed_path
from windtunnel.harness.replay.sightings import Stream, read_streams
from windtunnel.harness.replay.two_captures import is_nearer, match_captures
from windtunnel.harness.scenario.loader import ROOT_FOLDER, SUFFIX
from windtunnel.harness.scenario.schema.traffic import TRAFFIC_MAX
from windtunnel.harness.scenario.schema.units import format_duration


@dataclass(frozen=True)
class Captured:
    """The scenario made from one or two captures, and a summary of the captured streams."""

    name: str
    text: str
    streams: list[dict[str, object]]
    """For each stream: session, stream id, numbers of frames and outcomes, and whether two captures
    contain it.
    """

    notes: list[str]
    """What the scenario does not reproduce exactly."""

    damage: list[str]
    """What was damaged in the captures, and is not in the scenario. Also in the notes."""


def from_captures(files: Sequence[Path], target: Path, stream_ids: Sequence[int] = ()) -> Captured:
    """Convert one or two captures to a scenario.

    The name of the scenario is derived from `target`, the file to which it will be written. If
    `stream_ids` is given, all other streams are excluded. Raises CaptureError if a capture cannot
    be used, and ScenarioError if the streams cannot be expressed as a scenario.
    """
    damage: list[str] = []
    places = [read_streams(file, damage) for file in files]
    keys = [key for key in places[0] if not stream_ids or key[1] in stream_ids]
    notes = [*damage]
    if len(places) == 2:
        alone = [key for key in keys if key not in places[1]]
        alone += [key for key in places[1] if key not in places[0]]
        keys = [key for key in keys if key in places[1]]
        notes += [
            f"stream {stream_id}, session {session_id}: excluded, because it is in only one capture"
            for session_id, stream_id in dict.fromkeys(alone)
            if not stream_ids or stream_id in stream_ids
        ]
    if not keys:
        description = f"stream {', '.join(map(str, stream_ids))}" if stream_ids else "stream"
        both = " in both captures" if len(places) == 2 else ""
        raise CaptureError(f"{', '.join(map(str, files))}: found no {description}{both}")
    if len(keys) > TRAFFIC_MAX:
        raise CaptureError(f"{files[0]}: expected at most {TRAFFIC_MAX} streams, found {len(keys)}")
    seen = [_observed([place[key] for place in places]) for key in keys]
    notes += [note for each in seen for note in _notes(each)]
    delays_ns = {each.path.delay_ns for each in seen}
    if len(delays_ns) > 1:
        longest = format_duration(2 * max(delays_ns))
        notes.append(
            f"the round trips of the streams differ, and the longest, {longest}, applies to all"
        )
    name = name_for(target)
    streams = f"{len(seen)} {noun_for(len(seen), 'stream')}"
    about = f"Reproduces {streams} of {' and '.join(escaped(file.name) for file in files)}."
    text = text_of(document_of(seen, name, about), _header(files, notes))
    parse(text)
    return Captured(name, text, [_stream_document(each) for each in seen], notes, damage)


def _observed(sightings: Sequence[Stream]) -> ObservedStream:
    if len(sightings) == 1:
        outcomes, left_out = repeatable(infer_outcomes(sightings[0]))
        path = observed_path((sightings[0],))
        return ObservedStream(
            sightings[0], outcomes, is_followed=False, left_out=left_out, path=path
        )
    near, far = sightings
    if not is_nearer(near, far):
        near, far = far, near
    path = observed_path((near, far))
    return ObservedStream(near, match_captures(near, far), is_followed=True, path=path)


def _notes(seen: ObservedStream) -> list[str]:
    stream = seen.stream
    who = f"stream {stream.stream_id}, session {stream.session_id}"
    notes = []
    if not stream.has_setup:
        notes.append(f"{who}: no SETUP was captured, so term length and MTU are minimum values")
    if not have_equal_lengths(stream):
        notes.append(
            f"{who}: message lengths vary, so frame boundaries differ from "
            "the capture's, and each range applies to all frames that overlap it"
        )
    if not seen.is_followed:
        notes.append(
            f"{who}: one capture was given, so losses, delays and duplicates are estimates: how "
            "many retransmits were lost follows from the time in which NAKs had no answer"
        )
        if stream.in_group:
            notes.append(
                f"{who}: sent to a multicast group, so the scenario's only receiver loses "
                "what any member requested"
            )
    notes += [f"{who}: {each}" for each in seen.path.notes()]
    if seen.left_out:
        notes.append(
            f"{who}: {seen.left_out} outcomes of retransmits are omitted, because an earlier "
            "transmission had arrived, and the scenario's receiver does not request them"
        )
    return notes


def _stream_document(seen: ObservedStream) -> dict[str, object]:
    stream = seen.stream
    outcomes = Counter(each.what for each in seen.outcomes)
    return {
        "session_id": stream.session_id,
        "stream_id": stream.stream_id,
        "frames": len(stream.transmissions),
        "initial_term_id": stream.initial_term_id,
        "term_length": stream.term_length,
        "mtu": stream.mtu,
        "reliable": seen.is_reliable,
        "followed": seen.is_followed,
        "bytes_per_s": seen.path.bytes_per_s,
        "window_bytes": seen.path.window_bytes,
        "round_trip_ns": 2 * seen.path.delay_ns,
        "lost": _lost_frames(seen),
        "late": outcomes["late"],
        "copies": outcomes["copy"],
    }


def _lost_frames(seen: ObservedStream) -> int:
    """Return the number of lost transmissions. For one capture, and in gaps that were never filled,
    this number is estimated.
    """
    usual = int(np.median(seen.stream.transmissions["length"]))
    captured = set(seen.stream.transmissions["position"].tolist())
    return sum(
        1 if each.position in captured else max(1, round(each.length / usual))
        for each in seen.outcomes
        if each.what == DROP
    )


def _header(files: Sequence[Path], notes: Sequence[str]) -> list[str]:
    lines = ["Intent", f"  The lost, late and duplicate frames in {files[0].name}"]
    if len(files) == 2:
        lines[-1] += f", matched with the arrivals in {files[1].name}"
    lines[-1] += "."
    if notes:
        lines += ["", "Not covered", *(f"  {note}." for note in notes)]
    return lines


def name_for(target: Path) -> str:
    """Derive a scenario's name from its file: the path within `scenarios/`, or else `captured/` and
    the file's stem.
    """
    parts = target.resolve().with_suffix("").parts
    if ROOT_FOLDER in parts:
        start = len(parts) - parts[::-1].index(ROOT_FOLDER)
        return "/".join(parts[start:])
    stem = target.name.removesuffix(SUFFIX).lower()
    return f"captured/{re.sub(r'[^a-z0-9]+', '-', stem).strip('-') or 'stream'}"
