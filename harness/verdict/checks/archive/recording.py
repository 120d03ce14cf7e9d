"""What an archive recorded: the stream as it was published, byte for byte, in the archive's files.

    published   | frame | frame | frame | frame | frame | frame |
    recording   | frame | frame | frame X                           its archive was killed
    recording                         | frame | frame | frame |     the next, from where it joined

A recording is one stretch of its stream: whole frames from where it began to where it stopped, each
as it was published, and zeros behind them. Of a stream whose archive lives there is one, from
beginning to end; each kill of the archive allows one more, later. Where the archive's disk is a
small one a recording may stop before its stream, but not before the disk is full. What the archive
said is recorded must be in the files, whatever befell it.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.dissect.archive_files import recorded_log
from windtunnel.harness.dissect.archive_files.recording_catalog import Recording
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.archive import DISK_OTHERS_BYTES
from windtunnel.harness.scenario.validation import archive_validation
from windtunnel.harness.verdict.core.evidence import Evidence, KeptArchive, Planned
from windtunnel.harness.verdict.core.finding import (
    Finding,
    Missing,
    could_not_look,
    failed,
    passed,
    together,
)

EQUAL = archive_validation.EQUAL
NONE_WRONG = -1


@dataclass(frozen=True)
class _Offence:
    """The first thing that is wrong, and where."""

    text: str
    position: int | None = None
    file: Path | None = None
    conclusive: bool = True
    "Whether the bytes prove it; what merely is not there yet, an overloaded host may excuse."


@dataclass(frozen=True)
class _Story:
    """All that is known of one stream's recordings."""

    kept: KeptArchive
    planned: Planned
    publisher: PublisherFacts
    told: RecorderFacts
    recordings: tuple[Recording, ...]
    "In the archive's catalog, in the order of their ids."
    kills: int
    "How often their archive was killed on order."
    is_full: bool
    "Whether all that the archive recorded leaves no room on its disk for one more file."
    reader: SubscriberFacts | None
    "Who read the same stream beside the archive, from the same driver."


def recording_equals_published(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """The archive's files hold the stream as it was published, byte for byte, up to its end."""
    findings = []
    for traffic in {each.id: each for each in traffics if each.recorded}.values():
        for host in traffic.archived:
            about = traffic.id if host == traffic.recorded else f"{traffic.id} copied to {host}"
            found = _story(evidence, traffic.at(traffic.recorded), host)
            if isinstance(found, Missing):
                findings.append(could_not_look(EQUAL, found, about))
            else:
                findings.append(_judged(evidence, host, traffic.id, found, about))
    return findings


def _story(evidence: Evidence, flow: TrafficCase, host: str) -> _Story | Missing:
    kept, case, told = evidence.archive(host), evidence.case, evidence.recorder(host, flow.id)
    found = together(evidence.planned(flow), evidence.publisher(flow), told, case)
    if isinstance(kept, Missing):
        return kept
    if isinstance(found, Missing):
        return found
    planned, publisher, said, case = found
    own = [each for each in kept.catalog.recordings if each.stream_id == flow.stream_id]
    is_full = _is_full(case, host, kept)
    beside = evidence.subscriber(flow) if flow.to_host == host == flow.recorded else None
    reader = beside if isinstance(beside, SubscriberFacts) else None
    return _Story(kept, planned, publisher, said, tuple(own), kills_of(case, host), is_full, reader)


def _is_full(case: Case, host: str, kept: KeptArchive) -> bool:
    """Whether a recording on that host could not go on. Of the disk of the machine nobody knows."""
    disk_bytes = next((each.disk_bytes for each in case.archives if each.host == host), None)
    if disk_bytes is None:
        return False
    recorded = sum(each.stop_position - each.start_position for each in kept.catalog.recordings)
    return recorded > disk_bytes - DISK_OTHERS_BYTES


def kills_of(case: Case, host: str) -> int:
    """How often the archive of a host is killed on order."""
    return sum(each.kills_archive and each.host == host for each in case.events)


def _judged(evidence: Evidence, host: str, traffic_id: str, story: _Story, about: str) -> Finding:
    files = evidence.folder.host(host)
    where = [evidence.name_of(files.archive), evidence.name_of(files.recorder(traffic_id).document)]
    offence = _not_listed(story) or _not_as_told(story)
    for recording in () if offence else story.recordings:
        offence = offence or _inexact(story, recording)
    offence = offence or _not_in_turn(story) or _unheard(story)
    if offence is not None:
        if offence.file is not None:
            where.insert(0, evidence.name_of(offence.file))
        more = {"position": offence.position, "conclusive": offence.conclusive}
        return failed(EQUAL, offence.text, about, evidence=tuple(where), **more)
    recorded = sum(each.stop_position - each.start_position for each in story.recordings)
    count = len(story.recordings)
    text = f"{recorded} bytes of stream in {count} recordings, as they were published"
    if story.recordings[-1].stop_position < story.publisher.end_position:
        text += ", until the disk was full"
    facts = {"recordings": count, "bytes_of_stream": recorded}
    return passed(EQUAL, text, about, evidence=tuple(where), facts=facts)


def _not_listed(story: _Story) -> _Offence | None:
    """What is wrong with the catalog's entries of this stream."""
    if story.kept.catalog.damage:
        return _Offence(f"the catalog cannot be read to its end: {story.kept.catalog.damage}")
    count, most = len(story.recordings), 1 + story.kills
    if not 1 <= count <= most:
        text = f"the catalog has {count} recordings of the stream: expected "
        text += "one" if most == 1 else f"1 to {most}, its archive was killed {story.kills} times"
        return _Offence(text, conclusive=count > most)
    said = story.publisher
    wanted = {
        "session id": said.session_id,
        "initial term id": said.initial_term_id,
        "term length": said.term_length,
        "mtu": said.mtu,
    }
    for each in story.recordings:
        if not each.is_readable:
            fault = each.fault or "it is not valid"
            return _Offence(f"recording {each.recording_id} cannot be read: {fault}")
        if each.stop_position < 0:
            text = f"recording {each.recording_id} has not stopped, though its stream has ended"
            return _Offence(text, conclusive=False)
        found = (each.session_id, each.initial_term_id, each.term_length, each.mtu)
        for (what, published), recorded in zip(wanted.items(), found, strict=True):
            if published != recorded:
                text = f"recording {each.recording_id} has {what} {recorded}, published was"
                return _Offence(f"{text} {published}")
    return None


def _not_as_told(story: _Story) -> _Offence | None:
    """What the archive told its client and does not have."""
    told: dict[int, Recorded] = {each.recording_id: each for each in story.told.own_recordings}
    ids = {each.recording_id for each in story.recordings}
    lost = sorted(told.keys() - ids)
    if lost:
        return _Offence(f"recording {lost[0]} was told of, and is not in the catalog")
    for each in story.recordings:
        said = told.get(each.recording_id)
        if said is None:
            continue
        if said.told_position > each.stop_position:
            text = f"recording {each.recording_id} stops at {each.stop_position}, though its "
            text += f"archive had said that it was recorded up to {said.told_position}"
            return _Offence(text, each.stop_position)
        kept = (each.start_position, each.stop_position)
        if story.told.error and said.stop_position < 0:
            # Who was ended before that has not heard of the stop: see `_unheard`.
            kept = each.start_position, said.stop_position
        if (said.start_position, said.stop_position) != kept:
            text = f"recording {each.recording_id} goes from {each.start_position} to "
            text += f"{each.stop_position} in the catalog; its archive said from "
            return _Offence(f"{text}{said.start_position} to {said.stop_position}")
    return None


def _unheard(story: _Story) -> _Offence | None:
    """A stop that the archive has not told of, when the one who asked for it ended."""
    running = [each.recording_id for each in story.told.own_recordings if each.stop_position < 0]
    if not running:
        return None
    text = f"recording {running[0]} has stopped, and its archive still said that it goes on"
    return _Offence(f"{text}; {story.told.error}", conclusive=False)


def _inexact(story: _Story, recording: Recording) -> _Offence | None:
    """The first frame of a recording that is not as it was published."""
    name, rows = f"recording {recording.recording_id}", story.planned.log.frames
    bounds = np.append(rows["position"], story.planned.log.end_position)
    for what, position in (
        ("begins", recording.start_position),
        ("stops", recording.stop_position),
    ):
        if position not in bounds:
            return _Offence(f"{name} {what} at {position}, where no frame does", position)
    files = story.kept.files.get(recording.recording_id, {})
    missing = recording.missing_base(files)
    if missing is not None:
        return _Offence(f"{name} has no file of the frames from position {missing} on", missing)
    identity = np.array(
        [recording.session_id, recording.stream_id, recording.initial_term_id,
         recording.term_length],
        dtype=np.int64,
    )  # fmt: skip
    for base, path in files.items():
        if not recording.has_segment(base):
            continue
        offence = _wrong_file(story, recording, base, path, identity)
        if offence is not None:
            return offence
    return None


def _wrong_file(
    story: _Story, recording: Recording, base: int, path: Path, identity: NDArray[np.int64]
) -> _Offence | None:
    """The first byte of a segment file that is not as it should be."""
    rows = story.planned.log.frames
    first, last = recording.data_start(base), recording.data_end(base)
    own = rows[(rows["position"] >= first) & (rows["position"] < last)]
    buf = story.kept.content(path)
    if len(buf) != recording.segment_length:
        text = f"{path.name} has {len(buf)} bytes, expected {recording.segment_length}"
        return _Offence(text, file=path)
    frame, byte = recorded_log.first_wrong_frame(buf, base, own, story.planned.payload, identity)
    if frame != NONE_WRONG:
        position = int(own["position"][frame])
        found = bytes(buf[position - base :][:32]).hex(" ", -4)
        text = f"at position {position} of {path.name} byte {byte} of the frame is not what was "
        text += f"published; its header is {found}"
        return _Offence(text, position, path)
    behind = np.flatnonzero(buf[last - base :])
    if len(behind):
        position = last + int(behind[0])
        text = f"{path.name} goes on behind the stop at {last}: byte {position - base} is not zero"
        return _Offence(text, position, path)
    return None


def _not_in_turn(story: _Story) -> _Offence | None:
    """Whether the recordings together are what they should be of the stream."""
    first, last = story.recordings[0], story.recordings[-1]
    begin, end = story.publisher.start_position, story.publisher.end_position
    if first.start_position != begin:
        text = f"recording {first.recording_id} begins at {first.start_position}, the stream at"
        return _Offence(f"{text} {begin}", first.start_position)
    for before, after in pairwise(story.recordings):
        if after.start_position < before.stop_position:
            text = f"recording {after.recording_id} begins at {after.start_position}, though the "
            text += f"one before it had everything up to {before.stop_position}"
            return _Offence(text, after.start_position)
    if last.stop_position != end and not (story.is_full and last.stop_position < end):
        text = f"recording {last.recording_id} stops at {last.stop_position}, the stream at {end}"
        conclusive = last.stop_position > end or _was_left(story, last)
        return _Offence(text, last.stop_position, conclusive=conclusive)
    return None


def _was_left(story: _Story, recording: Recording) -> bool:
    """Whether a recording stopped though its image lived on and its archive, too: that is no haste.

    The reader beside it had the same image of the same driver, and had more of it; the archive told
    of the stop, in good order, and was not killed.
    """
    reader, stop = story.reader, recording.stop_position
    told = [each.stop_position for each in story.told.own_recordings]
    return (
        reader is not None
        and not reader.parts
        and reader.session_id == recording.session_id
        and reader.join_position <= stop < reader.end_position
        and not story.kills
        and not story.told.error
        and stop in told
    )
