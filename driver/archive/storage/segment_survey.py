"""Derives the catalog entry of a recording from its segment files.

    base                    base + L                base + 2 L
    |   frame | ... frame   | frame | ... | frame   | frame | ... frame | 0 0 0
        ^ start                                                         ^ stop

If there are several files, the longest sequence without a gap up to the end of the data is used. A
frame contains its stream id. Its term id and term offset limit the possible term lengths at its
position, and the term length is certain once a term has ended. A fragment that is followed by
another fragment has the maximum length, the MTU. Other values are guessed and reported as guesses.
Files are only read.
Source: archive-protocol 4.3, 4.4.
"""

import os
import stat
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage import frame_walk
from windtunnel.driver.archive.storage.checksum import CRC_32, CRC_32C, Checksum, crc
from windtunnel.driver.archive.storage.frame_walk import END, HEADER_LENGTH, MORE, SegmentReader
from windtunnel.driver.archive.storage.recovery import recovered_stop
from windtunnel.driver.archive.storage.segment_file import (
    SEGMENT_LENGTH_MAX,
    SEGMENT_LENGTH_MIN,
    SegmentFile,
)
from windtunnel.driver.base.arith import align, is_power_of_two, wrap_i32
from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer.position import TERM_LENGTH_MAX, TERM_LENGTH_MIN
from windtunnel.driver.wire import data, frame_type, header

INVALID = -1
TERM_BITS_MIN, TERM_BITS_MAX = TERM_LENGTH_MIN.bit_length() - 1, TERM_LENGTH_MAX.bit_length() - 1
TERM_LENGTH = 16 << 20
MTU_LENGTH = 1408
"""Aeron's default values for streams over UDP, which are used as guesses if the frames
allow them.
"""
CHANNEL = "aeron:udp?alias=recovered-channel-unknown"
"""The placeholder for an unknown channel. Any program can parse it, but cannot use it by mistake,
because it has no endpoint.
"""
SOURCE_IDENTITY = "unknown (recovered)"

FACTS = np.dtype(
    (
        np.record,
        [
            ("frame_count", "i8"),
            ("term_lengths", "i8"),  # bit n: a term length of 2^n fits every frame
            ("stream_id", "i8"),
            ("session_id", "i8"),  # session id of the last DATA frame
            ("pad_count", "i8"),
            ("pad_session_id", "i8"),
            ("longest", "i8"),  # the frame length of the longest DATA frame, and its position
            ("longest_at", "i8"),
            (
                "fragment",
                "i8",
            ),  # the length of a frame that is not the last fragment of its message, or 0
        ],
    )
)
"""The common properties of the frames seen so far, as an array of length one."""


@kernel
def survey(chunk, length, at, position, facts, initial_term_ids):
    """Collect the common properties of the frames in a chunk of a segment file, from offset `at` up
    to the first inconsistent frame.

    Shapes:  facts FACTS[1], initial_term_ids int64[31], by the log2 of a term length
    Returns: (offset where it stopped, END, MORE or INVALID)
    """
    fact = facts[0]
    origin = position - at
    while at + HEADER_LENGTH <= length:
        frame_length = header.frame_length(chunk, at)
        if frame_length == 0:
            return at, END
        type_code = header.frame_type(chunk, at)
        is_data = type_code == frame_type.DATA
        if frame_length < HEADER_LENGTH or not (is_data or type_code == frame_type.PAD):
            return at, INVALID
        if fact.frame_count > 0 and data.stream_id(chunk, at) != fact.stream_id:
            return at, INVALID
        here = origin + at
        end = at + align(frame_length, data.ALIGNMENT)
        possible = 0
        for bits in range(TERM_BITS_MIN, TERM_BITS_MAX + 1):
            offset = here & ((1 << bits) - 1)
            initial = wrap_i32(data.term_id(chunk, at) - (here >> bits))
            if fact.term_lengths >> bits & 1 == 0 or offset != data.term_offset(chunk, at):
                continue
            if offset + (end - at) > 1 << bits:
                continue
            if fact.frame_count == 0 or initial_term_ids[bits] == initial:
                possible |= 1 << bits
                initial_term_ids[bits] = initial
        if possible == 0:
            return at, INVALID
        fact.term_lengths = possible
        fact.stream_id = data.stream_id(chunk, at)
        fact.frame_count += 1
        if is_data:
            fact.session_id = data.session_id(chunk, at)
            if frame_length > fact.longest:
                fact.longest = frame_length
                fact.longest_at = here
            if header.flags(chunk, at) & frame_type.END == 0:
                fact.fragment = frame_length
        else:
            fact.pad_count += 1
            fact.pad_session_id = data.session_id(chunk, at)
        at = end
    return at, MORE


@dataclass(slots=True)
class SurveyResult:
    """A descriptor that is derived from segment files, and the names of its guessed fields."""

    descriptor: RecordingDescriptor
    is_usable: bool
    """Whether the files contain data that can be replayed with this descriptor."""
    guesses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    """A sequence of consecutive segment files, last file first."""

    files: list[SegmentFile]
    facts: np.ndarray
    initial_term_ids: np.ndarray
    start: int = 0
    stop: int = 0
    session_id: int = 0
    """The session id of the last frame. An extended recording has several session ids."""
    fault: str = ""


def survey_files(segments: list[SegmentFile]) -> SurveyResult:
    """Derive a descriptor from a recording's segment files, which must be in order of their base
    positions.
    """
    notes: list[str] = []
    files = [each for each in segments if _is_usable(each, notes)]
    segment_length, is_certain = _segment_length(files)
    run = _find_run(files, segment_length, notes)
    guesses = [] if is_certain else [f"segment length {segment_length}"]
    if not run.files:
        return SurveyResult(_placeholder(segments, files, segment_length), False, guesses, notes)
    return _survey_result(run, segment_length, guesses, notes)


def _is_usable(segment: SegmentFile, notes: list[str]) -> bool:
    try:
        is_regular = stat.S_ISREG(os.lstat(segment.path).st_mode)
    except OSError as error:
        raise StorageError(f"cannot stat {segment.path}: {error.strerror}") from error
    if is_regular and segment.base >= 0 and segment.base % data.ALIGNMENT == 0:
        return True
    notes.append(
        f"{segment.path.name} is not used: expected a regular file whose base is a multiple of "
        f"{data.ALIGNMENT}"
    )
    return False


def _segment_length(files: list[SegmentFile]) -> tuple[int, bool]:
    """Return the segment length, and whether it is certain. It is certain if one of the files has
    this length.
    """
    sizes = Counter(each.path.stat().st_size for each in files)
    proper = [
        (count, size) for size, count in sizes.items()
        if SEGMENT_LENGTH_MIN <= size <= SEGMENT_LENGTH_MAX and is_power_of_two(size)
    ]  # fmt: skip
    if proper:
        return max(proper)[1], True
    gaps = [later.base - each.base for each, later in pairwise(files)]
    least = min([SEGMENT_LENGTH_MAX, *gaps]) if gaps else max(sizes, default=0)
    power = 1 << max(least - 1, 0).bit_length()
    return min(max(power, SEGMENT_LENGTH_MIN), SEGMENT_LENGTH_MAX), False


def _find_run(files: list[SegmentFile], segment_length: int, notes: list[str]) -> _Run:
    """Return the longest sequence of consecutive files that ends at the end of the data."""
    possible = sum(
        1 << bits for bits in range(TERM_BITS_MIN, TERM_BITS_MAX + 1)
        if 1 << bits <= segment_length and not any(each.base & (1 << bits) - 1 for each in files)
    )  # fmt: skip
    run = _Run([], np.zeros(1, dtype=FACTS), np.zeros(TERM_BITS_MAX + 1, dtype=np.int64))
    run.facts["term_lengths"] = possible
    rest = list(files)
    while rest and not (run.files and run.start > run.files[-1].base):
        if run.files and rest[-1].base + segment_length != run.files[-1].base:
            notes.append(f"the segment file before {run.files[-1].path.name} is missing")
            break
        if not _prepend(run, rest[-1], segment_length, notes) and run.files:
            break
        rest.pop()
    if rest:
        names = ", ".join(each.path.name for each in rest)
        notes.append(f"files kept, but no longer part of the recording: {names}")
    return run


def _prepend(run: _Run, segment: SegmentFile, segment_length: int, notes: list[str]) -> bool:
    """Prepend a file to a sequence if there is no gap between them. Returns whether the file was
    added.
    """
    facts, initial_term_ids = run.facts.copy(), run.initial_term_ids.copy()
    with SegmentReader(segment.path, segment.base) as reader:
        limit = min(reader.length, segment_length)
        first = _first_frame(reader, limit)
        if first < 0:
            if run.files:
                notes.append(f"{segment.path.name} contains no frame")
            return False
        at, status = first, MORE
        while status == MORE and at + HEADER_LENGTH <= limit:
            chunk = reader.read(at, min(frame_walk.CHUNK_LENGTH, limit - at))
            passed, status = survey(
                chunk, chunk.size, 0, segment.base + at, facts, initial_term_ids
            )
            at += int(passed)
            if not passed:
                break
    fault = f"the frame at position {segment.base + at} in {segment.path.name} is invalid"
    if at == first or (run.files and at != segment_length):
        early_end = f"the data of {segment.path.name} ends before the end of the file"
        notes.append(fault if status == INVALID else early_end)
        return False
    if not run.files:
        run.stop, run.fault = segment.base + at, fault if status == INVALID else ""
        run.session_id = int(facts[0].session_id)
    run.files.append(segment)
    run.facts, run.initial_term_ids, run.start = facts, initial_term_ids, segment.base + first
    return True


def _first_frame(reader: SegmentReader, limit: int) -> int:
    """Return the file offset of the first frame, or -1 if the file contains no frame."""
    for at in range(0, limit, frame_walk.CHUNK_LENGTH):
        chunk = reader.read(at, min(frame_walk.CHUNK_LENGTH, limit - at))
        words = chunk[: chunk.size // data.ALIGNMENT * data.ALIGNMENT].view("<i4")
        found = np.flatnonzero(words[:: data.ALIGNMENT // 4])
        if found.size:
            return at + int(found[0]) * data.ALIGNMENT
    return -1


def _survey_result(
    run: _Run, segment_length: int, guesses: list[str], notes: list[str]
) -> SurveyResult:
    """Derive the descriptor of a recording from a sequence of its files."""
    first, last, fact = run.files[-1], run.files[0], run.facts[0]
    possible = [
        bits for bits in range(TERM_BITS_MIN, TERM_BITS_MAX + 1)
        if int(fact.term_lengths) >> bits & 1 and 1 << bits > run.start - first.base
    ]  # fmt: skip
    if not possible:
        notes.append(f"{first.path.name}: expected the first frame in the first term")
        return SurveyResult(
            _placeholder(run.files, run.files, segment_length), False, guesses, notes
        )
    usual = [bits for bits in possible if 1 << bits <= TERM_LENGTH]
    bits = max(usual) if usual else min(possible)
    if len(possible) > 1:
        guesses.append(f"term length {1 << bits}")
    mtu = max(int(fact.fragment), int(fact.longest))
    if not fact.fragment:
        mtu = max(int(align(mtu, data.ALIGNMENT)), MTU_LENGTH)
        guesses.append(f"MTU {mtu}")
    checksum = _checksum(run, int(fact.longest_at), int(fact.longest))
    session_id = run.session_id
    if checksum is not None:
        notes.append(f"the frames contain {checksum.name} checksums instead of session ids")
        session_id = int(fact.pad_session_id)
        if not fact.pad_count:
            guesses.append("session id 0")
    descriptor = replace(
        _placeholder(run.files, [first, last], segment_length),
        start_position=run.start, term_buffer_length=1 << bits,
        initial_term_id=int(run.initial_term_ids[bits]), mtu_length=mtu, session_id=session_id,
        stream_id=int(fact.stream_id),
    )  # fmt: skip
    stop = run.stop
    if run.fault:
        notes.append(f"the recording ends early: {run.fault}")
    else:
        recovered = recovered_stop(last.path.parent, descriptor, checksum, [last])
        stop = recovered.position
        if recovered.doubtful_position is not None:
            stop = recovered.doubtful_position
            notes.append(f"the last frame, at position {stop}, may be torn and is left out")
    return SurveyResult(replace(descriptor, stop_position=stop), True, guesses, notes)


def _checksum(run: _Run, position: int, frame_length: int) -> Checksum | None:
    """Return the type of checksum that the longest frame contains, or None if it contains no
    checksum.
    """
    if frame_length <= HEADER_LENGTH:
        return None
    segment = next(each for each in run.files if each.base <= position)
    with SegmentReader(segment.path, segment.base) as reader:
        length = int(align(frame_length, data.ALIGNMENT))
        frame = reader.read(position - segment.base, length)
    for checksum in (CRC_32, CRC_32C):
        value = crc(checksum.table, frame, HEADER_LENGTH, frame.size)
        if frame.size == length and int(data.session_id(frame, 0)) == int(value):
            return checksum
    return None


def _placeholder(
    segments: list[SegmentFile], dated: list[SegmentFile], segment_length: int
) -> RecordingDescriptor:
    """Return a descriptor with default values for a recording whose frames are not known."""
    times = [each.path.stat().st_mtime_ns // 1_000_000 for each in dated] or [NULL_VALUE]
    base = dated[0].base if dated else 0
    return RecordingDescriptor(
        control_session_id=0, correlation_id=0, recording_id=segments[0].recording_id,
        start_timestamp=times[0], stop_timestamp=times[-1], start_position=base,
        stop_position=base, initial_term_id=0, segment_file_length=segment_length,
        term_buffer_length=TERM_LENGTH_MIN, mtu_length=MTU_LENGTH, session_id=0, stream_id=0,
        stripped_channel=CHANNEL, original_channel=CHANNEL, source_identity=SOURCE_IDENTITY,
    )  # fmt: skip
