"""Descriptors derived from frames are compared with the parameters of the recording."""

import random

import numpy as np
import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage import frame_walk, segment_survey
from windtunnel.driver.archive.storage.frame_walk import END, MORE
from windtunnel.driver.archive.storage.segment_file import segments_of
from windtunnel.driver.archive.storage.segment_survey import FACTS, INVALID


@pytest.mark.parametrize("term_bits", [16, 17, 18])
@pytest.mark.parametrize("seed", range(4))
def test_the_descriptor_of_a_recording_with_two_terms_is_exact(
    tmp_path, monkeypatch, term_bits, seed
):
    chance = random.Random(seed)
    term = 1 << term_bits
    monkeypatch.setattr(own, "TERM", term)
    monkeypatch.setattr(own, "SEGMENT", term << chance.randrange(2))
    monkeypatch.setattr(own, "INITIAL_TERM_ID", chance.randrange(-(1 << 31), 1 << 31))
    monkeypatch.setattr(frame_walk, "CHUNK_LENGTH", chance.choice((4096, 1 << 20)))
    start = chance.randrange(1 << 24) * 32
    lengths = [chance.randrange(1, 1377) for _ in range(term // 250)]
    end = own.write(tmp_path, 0, own.stream(lengths, start), start)
    found = segment_survey.survey_files(segments_of(tmp_path, 0)).descriptor
    assert (found.start_position, found.stop_position) == (start, end)
    assert (found.term_buffer_length, found.segment_file_length) == (term, own.SEGMENT)
    assert (found.initial_term_id, found.stream_id, found.session_id) == (
        own.INITIAL_TERM_ID, own.STREAM_ID, own.SESSION_ID,
    )  # fmt: skip


def _facts():
    facts = np.zeros(1, dtype=FACTS)
    facts["term_lengths"] = ((1 << 31) - 1) ^ ((1 << 16) - 1)
    return facts, np.zeros(31, dtype=np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_arbitrary_bytes_are_surveyed_within_their_bounds(seed):
    chance = np.random.default_rng(seed)
    frames = b"".join(content for _, content in own.stream([700] * 40))
    chunk = np.frombuffer(frames, dtype=np.uint8).copy()
    for at in chance.integers(0, chunk.size, 10):
        chunk[at] = chance.integers(0, 256)
    for content in (chunk, chance.integers(0, 256, 8192, dtype=np.uint8)):
        at, status = segment_survey.survey(content, content.size, 0, 0, *_facts())
        assert status in (END, MORE, INVALID)
        assert at >= 0
        assert at <= content.size or status == MORE


@pytest.mark.parametrize(
    ("place", "value"), [(0, -32), (0, 31), (6, 7), (8, 1), (16, 1), (20, 1), (3, 0x7F)]
)
def test_a_frame_that_contradicts_its_position_is_invalid(place, value):
    frames = own.stream([1000] * 3)
    content = bytearray(b"".join(part for _, part in frames))
    second = frames[1][0]
    size = {6: 2, 3: 1}.get(place, 4)
    content[second + place : second + place + size] = value.to_bytes(size, "little", signed=True)
    chunk = np.frombuffer(bytes(content), dtype=np.uint8)
    facts, initial_term_ids = _facts()
    assert segment_survey.survey(chunk, chunk.size, 0, 0, facts, initial_term_ids) == (
        second, INVALID,
    )  # fmt: skip
    assert facts[0]["frame_count"] == 1
