"""Check that an archive's segment files hold the published stream byte for byte.

    published   | frame | frame | frame | frame | frame | frame |
    recording   | frame | frame | frame X                           the archive was killed
    recording                         | frame | frame | frame |     the next one, from its join

A recording is one contiguous range of its stream: complete frames from its start position to its
stop position, each as published, followed by zeros. A stream has one recording, from beginning to
end; each kill of the archive allows one more, and a gap before it. The first recording may begin
later than its stream if the archive was killed before the stream began, or within 100 ms of that.
If the archive's disk is small, a recording may stop before its stream, but not before the disk is
full. What is in no recording is named, and can be limited by `unrecorded_at_most`. Everything up to
a position that the archive reported as recorded must be in the files, even after a kill.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.dissect.archive_files import recorded_log
from windtunnel.harness.dissect.archive_files.recording_catalog import Recording
from windtunnel.harness.scenario.resolved.case import Case, TrafficCase
from windtunnel.harness.scenario.schema.archive import DISK_RESERVE_BYTES
from windtunnel.harness.scenario.validation import archive_validation
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.evidence_contents import Planned, SavedArchive
from windtunnel.harness.verdict.core.finding import Finding, failed, finding_of, passed, present
from windtunnel.harness.verdict.views import unrecorded
from windtunnel.harness.verdict.views.pauses import kills_of

EQUAL = archive_validation.EQUAL
NONE_WRONG = -1
START_TOLERANCE_NS = 100_000_000
"""Time in which an archive begins to record a stream."""


@dataclass(frozen=True)
class _Violation:
    """The first violation found in a stream's recordings, with its position if it has one."""

    text: str
    position: int | None = None
    file: Path | None = None
    conclusive: bool = True
    """Whether the recorded bytes prove the violation. A slow host can cause missing data."""


@dataclass(frozen=True)
class _RecordingEvidence:
    """The files and reports that show what an archive recorded of one stream."""

    kept: SavedArchive
    planned: Planned
    publisher: PublisherFacts
    recorder: RecorderFacts
    recordings: tuple[Recording, ...]
    "The stream's recordings in the archive's catalog, in the order of their ids."
    kills: int
    "Number of times that the scenario's host events kill the archive."
    is_killed_early: bool
    "Whether the archive was killed before or soon after the stream began."
    is_full: bool
    "Whether the recordings leave too little space on the archive's disk for another file."
    reader: SubscriberFacts | None
    "The report of the stream's subscriber on the archive's host, or None without a subscriber."


def recording_equals_published(evidence: Evidence, traffics: list[TrafficCase]) -> list[Finding]:
    """The archive's segment files hold the published stream byte for byte, up to its end."""
    findings = []
    for traffic in {each.id: each for each in traffics if each.recorded}.values():
        for host in traffic.archived:
            about = traffic.id if host == traffic.recorded else f"{traffic.id} copied to {host}"
            findings.append(finding_of(EQUAL, about, _judge, evidence, host, traffic, about))
    return findings


def _collect(evidence: Evidence, flow: TrafficCase, host: str) -> _RecordingEvidence:
    kept = present(evidence.archive(host))
    planned, publisher, recorder, case = present(
        evidence.planned(flow),
        evidence.publisher(flow),
        evidence.recorder(host, flow.id),
        evidence.case,
    )
    own = [each for each in kept.catalog.recordings if each.stream_id == flow.stream_id]
    is_full = _is_full(case, host, kept)
    beside = evidence.subscriber(flow) if flow.to_host == host == flow.recorded else None
    reader = beside if isinstance(beside, SubscriberFacts) else None
    soon_ns = publisher.started_ns + START_TOLERANCE_NS
    is_early = any(each.began_ns < soon_ns for each in kills_of(evidence, host, "archive"))
    return _RecordingEvidence(
        kept, planned, publisher, recorder, tuple(own), archive_kills(case, host), is_early,
        is_full, reader,
    )  # fmt: skip


def _is_full(case: Case, host: str, kept: SavedArchive) -> bool:
    """Return whether the archive's disk is full. Returns False if its size is not limited."""
    disk_bytes = next((each.disk_bytes for each in case.archives if each.host == host), None)
    if disk_bytes is None:
        return False
    recorded = sum(each.stop_position - each.start_position for each in kept.catalog.recordings)
    return recorded > disk_bytes - DISK_RESERVE_BYTES


def archive_kills(case: Case, host: str) -> int:
    """Return the number of times that the scenario's host events kill the archive on a host."""
    return sum(each.kills_archive and each.host == host for each in case.events)


def _judge(evidence: Evidence, host: str, traffic: TrafficCase, about: str) -> Finding:
    data = _collect(evidence, traffic.at(traffic.recorded), host)
    files = evidence.folder.host(host)
    where = [evidence.name_of(files.archive), evidence.name_of(files.recorder(traffic.id).document)]
    violation = _wrong_catalog(data) or _differs_from_report(data)
    for recording in () if violation else data.recordings:
        violation = violation or _wrong_recording(data, recording)
    violation = violation or _wrong_sequence(data) or _unreported_stop(data)
    if violation is not None:
        if violation.file is not None:
            where.insert(0, evidence.name_of(violation.file))
        more = {"position": violation.position, "conclusive": violation.conclusive}
        return failed(EQUAL, violation.text, about, evidence=tuple(where), **more)
    recorded = sum(each.stop_position - each.start_position for each in data.recordings)
    count = len(data.recordings)
    recordings = noun_for(count, "recording")
    text = f"{recorded} bytes in {count} {recordings}, identical to the published stream"
    if data.recordings[-1].stop_position < data.publisher.end_position:
        text += ", until the disk was full"
    stretches = ((each.start_position, each.stop_position) for each in data.recordings)
    begin, end = data.publisher.start_position, data.publisher.end_position
    ranges = unrecorded.unrecorded_ranges(stretches, begin, end)
    if ranges:
        text += f"; {unrecorded.unrecorded_text(ranges)}"
    facts = {
        "recordings": count,
        "bytes_of_stream": recorded,
        unrecorded.BYTES: unrecorded.total_bytes(ranges),
    }
    return passed(EQUAL, text, about, evidence=tuple(where), facts=facts)


def _wrong_catalog(data: _RecordingEvidence) -> _Violation | None:
    """Return the first violation in the catalog entries of this stream, or None."""
    if data.kept.catalog.damage:
        return _Violation(f"the catalog cannot be read to its end: {data.kept.catalog.damage}")
    count, most = len(data.recordings), 1 + data.kills
    if not 1 <= count <= most:
        text = f"the catalog has {count} recordings of the stream: expected "
        text += "1" if most == 1 else f"1 to {most}, at most one for each start of the archive"
        return _Violation(text, conclusive=count > most)
    publisher = data.publisher
    expected = {
        "session id": publisher.session_id,
        "initial term id": publisher.initial_term_id,
        "term length": publisher.term_length,
        "mtu": publisher.mtu,
    }
    for each in data.recordings:
        if not each.is_readable:
            fault = each.fault or "it is not valid"
            return _Violation(f"recording {each.recording_id} is unreadable: {fault}")
        if each.stop_position < 0:
            text = f"recording {each.recording_id} has not stopped, but its stream has ended"
            return _Violation(text, conclusive=False)
        found = (each.session_id, each.initial_term_id, each.term_length, each.mtu)
        for (what, published), recorded in zip(expected.items(), found, strict=True):
            if published != recorded:
                text = f"recording {each.recording_id} has {what} {recorded}, expected {published}"
                return _Violation(text)
    return None


def _differs_from_report(data: _RecordingEvidence) -> _Violation | None:
    """Return a violation if a recording differs from what the archive reported to its client."""
    reported: dict[int, Recorded] = {each.recording_id: each for each in data.recorder.recordings}
    ids = {each.recording_id for each in data.recordings}
    lost = sorted(reported.keys() - ids)
    if lost:
        return _Violation(f"the archive reported recording {lost[0]}, which is not in the catalog")
    for each in data.recordings:
        report = reported.get(each.recording_id)
        if report is None:
            continue
        if report.told_position > each.stop_position:
            text = f"recording {each.recording_id} stops at {each.stop_position}, but the archive "
            text += f"had reported position {report.told_position} as recorded"
            return _Violation(text, each.stop_position)
        kept = (each.start_position, each.stop_position)
        if data.recorder.error and report.stop_position < 0:
            # A client that ended before the recording stopped could not see the stop: see
            # `_unreported_stop`.
            kept = each.start_position, report.stop_position
        if (report.start_position, report.stop_position) != kept:
            text = f"recording {each.recording_id} is from {each.start_position} to "
            text += f"{each.stop_position} in the catalog, but the archive reported "
            return _Violation(f"{text}{report.start_position} to {report.stop_position}")
    return None


def _unreported_stop(data: _RecordingEvidence) -> _Violation | None:
    """Return a violation if the archive still reported a stopped recording as active."""
    running = [each.recording_id for each in data.recorder.recordings if each.stop_position < 0]
    if not running:
        return None
    text = f"recording {running[0]} has stopped, but the archive still reported it as active"
    return _Violation(f"{text}; {data.recorder.error}", conclusive=False)


def _wrong_recording(data: _RecordingEvidence, recording: Recording) -> _Violation | None:
    """Return the first violation in a recording's boundaries, segment files or frames."""
    name, rows = f"recording {recording.recording_id}", data.planned.log.frames
    bounds = np.append(rows["position"], data.planned.log.end_position)
    for what, position in (
        ("begins", recording.start_position),
        ("stops", recording.stop_position),
    ):
        if position not in bounds:
            text = f"{name} {what} at {position}, which is not a frame boundary"
            return _Violation(text, position)
    files = data.kept.files.get(recording.recording_id, {})
    missing = recording.missing_base(files)
    if missing is not None:
        return _Violation(f"{name} has no segment file for position {missing}", missing)
    identity = np.array(
        [recording.session_id, recording.stream_id, recording.initial_term_id,
         recording.term_length],
        dtype=np.int64,
    )  # fmt: skip
    for base, path in files.items():
        if not recording.has_segment(base):
            continue
        violation = _wrong_file(data, recording, base, path, identity)
        if violation is not None:
            return violation
    return None


def _wrong_file(
    data: _RecordingEvidence,
    recording: Recording,
    base: int,
    path: Path,
    identity: NDArray[np.int64],
) -> _Violation | None:
    """Return a violation if a segment file has a wrong length or a wrong byte."""
    rows = data.planned.log.frames
    first, last = recording.data_start(base), recording.data_end(base)
    own = rows[(rows["position"] >= first) & (rows["position"] < last)]
    buf = data.kept.content(path)
    if len(buf) != recording.segment_length:
        text = f"{path.name} has {len(buf)} bytes, expected {recording.segment_length}"
        return _Violation(text, file=path)
    frame, byte = recorded_log.first_wrong_frame(buf, base, own, data.planned.payload, identity)
    if frame != NONE_WRONG:
        position = int(own["position"][frame])
        found = bytes(buf[position - base :][:32]).hex(" ", -4)
        text = f"byte {byte} of the frame at position {position} in {path.name} differs from the "
        text += f"published frame; the recorded header is {found}"
        return _Violation(text, position, path)
    nonzero = np.flatnonzero(buf[last - base :])
    if len(nonzero):
        position = last + int(nonzero[0])
        text = f"{path.name}: byte {position - base}, after the stop position {last}, is not zero"
        return _Violation(text, position, path)
    return None


def _wrong_sequence(data: _RecordingEvidence) -> _Violation | None:
    """Return a violation if the recordings overlap, or do not begin and end where the stream
    does.
    """
    first, last = data.recordings[0], data.recordings[-1]
    begin, end = data.publisher.start_position, data.publisher.end_position
    may_begin_later = data.is_killed_early and first.start_position > begin
    if first.start_position != begin and not may_begin_later:
        text = f"recording {first.recording_id} begins at {first.start_position}, expected {begin}"
        return _Violation(text, first.start_position)
    for before, after in pairwise(data.recordings):
        if after.start_position < before.stop_position:
            text = f"recording {after.recording_id} begins at {after.start_position}, but the "
            text += f"previous recording already covers everything up to {before.stop_position}"
            return _Violation(text, after.start_position)
    if last.stop_position != end and not (data.is_full and last.stop_position < end):
        text = f"recording {last.recording_id} stops at {last.stop_position}, expected {end}"
        conclusive = last.stop_position > end or _stopped_early(data, last)
        return _Violation(text, last.stop_position, conclusive=conclusive)
    return None


def _stopped_early(data: _RecordingEvidence, recording: Recording) -> bool:
    """Return whether a recording stopped although its image was active and its archive was running.

    That is the case if the subscriber on the same driver read the same image beyond the position at
    which the recording stopped, and the archive reported the stop, ended normally and was not
    killed. A slow host cannot explain that.
    """
    reader, stop = data.reader, recording.stop_position
    stops = [each.stop_position for each in data.recorder.recordings]
    return (
        reader is not None
        and not reader.parts
        and reader.session_id == recording.session_id
        and reader.join_position <= stop < reader.end_position
        and not data.kills
        and not data.recorder.error
        and stop in stops
    )
