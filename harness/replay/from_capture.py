"""From one or two captures to the text of a scenario, and what is to be said of it.

FILE            one place: fates are inferred from NAKs and from what came again
FILE_A FILE_B   two places: each frame is followed from the one to the other
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel.harness.replay.document import parse, text_of
from windtunnel.harness.replay.fate import inferred, is_nearer, joined
from windtunnel.harness.replay.observed import Seen, are_alike, document_of
from windtunnel.harness.replay.sightings import CaptureError, Stream, read_streams
from windtunnel.harness.scenario.loader import ROOT_FOLDER, SUFFIX
from windtunnel.harness.scenario.schema.model import TRAFFIC_MAX


@dataclass(frozen=True)
class Captured:
    """A scenario, and what it was made from."""

    name: str
    text: str
    streams: list[dict[str, object]]
    """Of each: session, stream, frames, what befell them, and how that is known."""

    notes: list[str]
    """What the scenario does not repeat exactly."""


def from_captures(files: Sequence[Path], target: Path, stream_ids: Sequence[int] = ()) -> Captured:
    """The scenario of one or two captures.

    `target` is the file that it is meant for, which gives it its name; with `stream_ids` all other
    streams are left out. Raises CaptureError, or ScenarioError where what was seen cannot be had.
    """
    places = [read_streams(file) for file in files]
    keys = [key for key in places[0] if not stream_ids or key[1] in stream_ids]
    notes = []
    if len(places) == 2:
        alone = [key for key in keys if key not in places[1]]
        alone += [key for key in places[1] if key not in places[0]]
        keys = [key for key in keys if key in places[1]]
        notes += [
            f"stream {stream_id}, session {session_id}: seen at one place only, left out"
            for session_id, stream_id in dict.fromkeys(alone)
            if not stream_ids or stream_id in stream_ids
        ]
    if not keys:
        wanted = f"stream {', '.join(map(str, stream_ids))}" if stream_ids else "stream"
        both = " at both places" if len(places) == 2 else ""
        raise CaptureError(f"{', '.join(map(str, files))}: no such {wanted}{both}")
    if len(keys) > TRAFFIC_MAX:
        raise CaptureError(f"{files[0]}: {len(keys)} streams; a scenario has {TRAFFIC_MAX} at most")
    seen = [_seen([place[key] for place in places]) for key in keys]
    notes += [note for each in seen for note in _notes(each)]
    name = name_for(target)
    about = f"What {' and '.join(file.name for file in files)} show: {len(seen)} streams."
    text = text_of(document_of(seen, name, about), _header(files, notes))
    parse(text)
    return Captured(name, text, [_told(each) for each in seen], notes)


def _seen(sightings: Sequence[Stream]) -> Seen:
    if len(sightings) == 1:
        return Seen(sightings[0], inferred(sightings[0]), is_followed=False)
    near, far = sightings
    if not is_nearer(near, far):
        near, far = far, near
    return Seen(near, joined(near, far), is_followed=True)


def _notes(seen: Seen) -> list[str]:
    stream = seen.stream
    who = f"stream {stream.stream_id}, session {stream.session_id}"
    notes = []
    if not stream.has_setup:
        notes.append(f"{who}: no SETUP in the capture, so term length and MTU are the least likely")
    if not are_alike(stream):
        notes.append(
            f"{who}: its messages differ in length, so frames begin elsewhere than they did and "
            "each range strikes the whole frames in it"
        )
    if not seen.is_followed:
        notes.append(f"{who}: seen from one place, so what befell its frames is inferred")
    return notes


def _told(seen: Seen) -> dict[str, object]:
    stream = seen.stream
    fates = Counter(each.what for each in seen.fates)
    return {
        "session_id": stream.session_id,
        "stream_id": stream.stream_id,
        "frames": len(stream.passages),
        "initial_term_id": stream.initial_term_id,
        "term_length": stream.term_length,
        "mtu": stream.mtu,
        "reliable": seen.is_reliable,
        "followed": seen.is_followed,
        "lost": fates["drop"],
        "late": fates["late"],
        "copies": fates["copy"],
    }


def _header(files: Sequence[Path], notes: Sequence[str]) -> list[str]:
    lines = ["Intent", f"  The losses, late and double frames that {files[0].name} shows"]
    if len(files) == 2:
        lines[-1] += f", by what arrived in {files[1].name}"
    lines[-1] += "."
    if notes:
        lines += ["", "Not covered", *(f"  {note}." for note in notes)]
    return lines


def name_for(target: Path) -> str:
    """The name of a scenario in a file: below `scenarios/` its path, elsewhere the file's own."""
    parts = target.resolve().with_suffix("").parts
    if ROOT_FOLDER in parts:
        start = len(parts) - parts[::-1].index(ROOT_FOLDER)
        return "/".join(parts[start:])
    stem = target.name.removesuffix(SUFFIX).lower()
    return f"captured/{re.sub(r'[^a-z0-9]+', '-', stem).strip('-') or 'stream'}"
