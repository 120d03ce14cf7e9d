"""A short attack with archive requests; `python -m tests.fuzz` runs the full one."""

import random

import pytest

from tests.fuzz import archive_requests
from tests.fuzz.archive_requests import HERE
from windtunnel.driver.archive.protocol.codec import encode
from windtunnel.driver.kernels.jit import JIT_DISABLED
from windtunnel.harness.fuzz.archive.messages import ANY, any_request, damaged

COUNT = 200 if JIT_DISABLED else 2_500


def test_hostile_requests_harm_neither_other_sessions_nor_files(tmp_path):
    assert archive_requests.attack(tmp_path, COUNT, 20263) == COUNT


def test_damage_to_the_checked_recording_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(archive_requests, "message", lambda number: b"another")
    with pytest.raises(AssertionError):
        archive_requests.attack(tmp_path, 50, 1)


def test_the_same_seed_sends_the_same_messages():
    sent = []
    for _ in range(2):
        chance = random.Random(9)
        sent.append([damaged(chance, encode(any_request(chance, chance.choice(ANY), 5, HERE)))
                     for _ in range(300)])  # fmt: skip
    assert sent[0] == sent[1]
    assert len({content[2:4] for content in sent[0]}) > 40
