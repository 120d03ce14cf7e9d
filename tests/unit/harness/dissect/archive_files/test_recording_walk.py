"""The walk over a segment file agrees with its reference, on valid files and on damaged ones."""

import random
import struct

import numpy as np
import pytest

from tests.naive import recording as naive
from tests.naive.crc32c import crc
from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.harness.dissect.archive_files import recording_walk as walk

MTU = 1408
LENGTHS = [0, 1, 33, 1376, 64, 532, 31, 32] * 36
REASONS = {
    walk.IMPOSSIBLE_LENGTH: "length",
    walk.NO_FRAME_TYPE: "type",
    walk.WRONG_PLACE: "place",
    walk.OTHER_STREAM: "stream",
    walk.MORE: "cut",
    walk.ENDED: "end",
}


def content_of(frames, length=own.SEGMENT, base=0):
    whole = bytearray(length)
    for position, frame in frames:
        whole[position - base : position - base + len(frame)] = frame
    return whole


def walked(content, start=0, end=own.SEGMENT, *, base=0, rows_max=1_000, mtu=MTU):
    """Walk over the content in windows of `rows_max` frames, and compare with the reference."""
    segment = np.zeros(1, dtype=walk.SEGMENT)
    for name, value in (
        ("position", start), ("end", end), ("initial_term_id", own.INITIAL_TERM_ID),
        ("term_length", own.TERM), ("mtu", mtu), ("stream_id", own.STREAM_ID),
        ("session_id", own.SESSION_ID),
    ):  # fmt: skip
        segment[0][name] = value
    found, status = [], walk.MORE
    rows = np.zeros(rows_max, dtype=walk.RECORDED)
    while status == walk.MORE:
        window = np.frombuffer(content, dtype=np.uint8)[int(segment[0]["position"]) - base :]
        status = walk.walk_segment(window, segment[0], rows)
        output = rows[: segment[0]["count"]]
        found += [dict(zip(walk.RECORDED.names, row, strict=True)) for row in output.tolist()]
        if not len(output):
            break
    geometry = (own.INITIAL_TERM_ID, own.TERM, mtu, own.SESSION_ID, own.STREAM_ID)
    expected = naive.frames(bytes(content), base, start, end, geometry)
    position = int(segment[0]["position"])
    assert (found, position, REASONS[status]) == expected
    return found, position, status


@pytest.mark.parametrize("rows_max", [1, 7, 1_000])
def test_frames_are_returned_up_to_the_first_without_a_length(rows_max):
    frames = own.stream(LENGTHS)
    found, position, status = walked(content_of(frames), rows_max=rows_max)
    assert status == walk.ENDED
    assert [each["position"] for each in found] == [at for at, _ in frames]
    assert position == frames[-1][0] + len(frames[-1][1])
    assert {each["frame_type"] for each in found} == {0, 1}


def test_nothing_after_the_stop_is_returned():
    frames = own.stream([100] * 20)
    stop = frames[7][0]
    found, position, status = walked(content_of(frames), end=stop)
    assert (len(found), position, status) == (7, stop, walk.ENDED)


def test_a_recording_may_begin_within_a_term_and_in_a_later_file():
    start = own.SEGMENT + 4096
    frames = own.stream([100] * 20, start)
    content = content_of(frames, base=own.SEGMENT)
    found, *_ = walked(content, start, 2 * own.SEGMENT, base=own.SEGMENT)
    assert [each["position"] for each in found] == [at for at, _ in frames]


def test_a_file_that_is_cut_short_ends_with_its_last_whole_frame():
    frames = own.stream([100] * 20)
    last = frames[9][0]
    for length in (last, last + 31, last + 32, last + len(frames[9][1]) - 1):
        found, position, status = walked(content_of(frames)[:length])
        assert (len(found), position, status) == (9, last, walk.MORE)


def test_checksums_in_place_of_session_ids_are_recognised():
    assert {e["checksum"] for e in walked(content_of(own.stream(LENGTHS)))[0]} == {walk.NO_CHECKSUM}
    frames = own.stream(LENGTHS, checksummed=True)
    found, *_ = walked(content_of(frames))
    assert {e["checksum"] for e in found if e["frame_type"] == 1} == {walk.CRC32}
    content = content_of(frames)
    for at, frame in frames:
        if frame[6]:
            struct.pack_into("<i", content, at + 12, crc(naive.CASTAGNOLI, frame[32:]))
    found, *_ = walked(content)
    # Both checksums of an empty payload are equal.
    output = {e["checksum"] for e in found if e["frame_type"] == 1 and e["frame_length"] > 32}
    assert output == {walk.CRC32C}


def test_another_session_continues_where_one_ended():
    frames = own.stream([100] * 20)
    content = content_of(frames)
    for at, _ in frames[12:]:
        struct.pack_into("<i", content, at + 12, 4711)
    found, *_ = walked(content)
    assert [each["session_id"] for each in found] == [own.SESSION_ID] * 12 + [4711] * 8
    assert {each["checksum"] for each in found} == {walk.NO_CHECKSUM}


@pytest.mark.parametrize(
    ("field", "kind", "value", "status"),
    [
        (0, "<i", 31, walk.IMPOSSIBLE_LENGTH),
        (0, "<i", MTU + 1, walk.IMPOSSIBLE_LENGTH),
        (0, "<i", own.TERM, walk.IMPOSSIBLE_LENGTH),
        (0, "<i", -132, walk.ENDED),
        (6, "<H", 2, walk.NO_FRAME_TYPE),
        (8, "<i", 32, walk.WRONG_PLACE),
        (20, "<i", own.INITIAL_TERM_ID - 1, walk.WRONG_PLACE),
        (16, "<i", own.STREAM_ID + 1, walk.OTHER_STREAM),
    ],
)
def test_ends_before_an_invalid_frame(field, kind, value, status):
    frames = own.stream([100] * 20)
    content = content_of(frames)
    struct.pack_into(kind, content, frames[5][0] + field, value)
    found, position, ended = walked(content)
    assert (len(found), position, ended) == (5, frames[5][0], status)


def test_a_frame_may_have_the_mtu_and_padding_may_reach_the_term_end():
    frames = own.stream([MTU - 32, MTU - 32])
    assert len(walked(content_of(frames))[0]) == 2
    pad = own.frame(0, bytes(own.TERM - 32), is_pad=True)
    found, position, _ = walked(content_of([(0, pad)]))
    assert (len(found), position) == (1, own.TERM)
    beyond = own.frame(32, bytes(own.TERM - 32), is_pad=True)
    assert walked(content_of([(0, own.frame(0, b"")), (32, beyond)]))[2] == walk.IMPOSSIBLE_LENGTH


def test_damaged_files_agree_with_the_reference():
    draw = random.Random(4)
    sound = content_of(own.stream(LENGTHS))
    for _ in range(300):
        content = bytearray(sound)
        for _ in range(draw.randint(1, 3)):
            content[draw.randrange(20_000)] = draw.randrange(256)
        walked(content[: draw.choice([len(content), draw.randrange(20_000)])])
