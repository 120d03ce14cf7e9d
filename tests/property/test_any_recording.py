"""Arbitrary recordings, damaged ones included: replays read them as the reference implementation
does.
"""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import replay_block as naive
from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.replay import recording_reader
from windtunnel.driver.archive.storage import frame_walk
from windtunnel.driver.archive.storage.checksum import CRC_32, NO_TABLE

STATUS = {
    frame_walk.MORE: "more",
    frame_walk.END: "end",
    recording_reader.PADDING: "padding",
    frame_walk.BAD_LENGTH: "length",
    frame_walk.BAD_TERM_OFFSET: "offset",
    frame_walk.BAD_TERM_ID: "term",
    frame_walk.BAD_STREAM_ID: "stream",
    frame_walk.BAD_CHECKSUM: "checksum",
    frame_walk.BAD_TYPE: "type",
}
IDS = (-77, 88)
MTU = 1408
LENGTHS = st.one_of(st.integers(0, 200), st.sampled_from([1376, 1377, 2000]))


@st.composite
def recordings(draw: st.DrawFn) -> tuple[bytes, int]:
    """Bytes of a recording, cut off anywhere and often damaged, and their position."""
    start = draw(st.sampled_from([0, 32, own.TERM - 3200, own.TERM + 64]))
    lengths = draw(st.lists(LENGTHS, min_size=1, max_size=12))
    is_checked = draw(st.booleans())
    content = bytearray(
        b"".join(each for _, each in own.stream(lengths, start, checksummed=is_checked))
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(content) - 1))
        content[at] ^= draw(st.integers(1, 255))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(content) // 32 - 1)) * 32
        content[at + draw(st.integers(0, 31))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.integers(32, len(content)))]), start


@given(recordings(), st.integers(1, 5000), st.booleans())
def test_any_block_is_checked_and_readdressed(
    given_block: tuple[bytes, int], until: int, is_checked: bool
) -> None:
    content, start = given_block
    frames = np.frombuffer(content, np.uint8).copy()
    first_word, frames[:8] = frames[:8].copy(), 0
    passed, status = recording_reader.readdress(
        frames, first_word, frames.size, until, start, own.INITIAL_TERM_ID, own.TERM, MTU,
        own.STREAM_ID, CRC_32.table if is_checked else NO_TABLE, *IDS,
    )  # fmt: skip
    sent, why = naive.readdress(content, start, until, mtu=MTU, ids=IDS, is_checked=is_checked)
    assert (int(passed), STATUS[int(status)]) == (len(sent), why)
    if sent:
        assert first_word.tobytes() + frames[8 : len(sent)].tobytes() == sent
    assert frames[max(len(sent), 8) :].tobytes() == content[max(len(sent), 8) :]
