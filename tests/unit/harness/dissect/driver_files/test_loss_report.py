"""The loss report: every entry up to the end of the list or its damage."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.reader import GOLDEN
from windtunnel.harness.dissect.driver_files.loss_report import Loss, read_loss_report

CHANNEL, SOURCE = "aeron:udp?endpoint=10.0.0.1:20121", "10.0.0.2:40456"


def entry(channel=CHANNEL, source=SOURCE, *, count=3, session=-7):
    body = struct.pack("<4q2i", count, 4096, 100, 200, session, 1001)
    body += struct.pack(f"<i{len(channel)}s", len(channel), channel.encode())
    body += bytes(-len(body) % 4)
    body += struct.pack(f"<i{len(source)}s", len(source), source.encode())
    return body + bytes(-len(body) % 64)


def read(content):
    return read_loss_report(np.frombuffer(bytes(content), dtype=np.uint8))


def golden(name):
    return bytes.fromhex((GOLDEN / "loss-report" / f"{name}.hex").read_text())


def test_an_entry_of_a_real_driver_is_read():
    report = read(golden("reliable"))
    assert report.problem == ""
    (loss,) = report.losses
    assert loss == Loss(
        observation_count=57,
        bytes_lost=74_848,
        first_ms=1_795_218_059_087,
        last_ms=1_795_218_059_187,
        session_id=77,
        stream_id=1001,
        channel="aeron:udp?endpoint=localhost:24326",
        source="127.0.0.1:41177",
    )


def test_an_empty_report_has_no_losses():
    assert read(golden("one-message")).losses == []
    assert read(b"").losses == []
    assert read(bytes(39)).losses == []


@pytest.mark.parametrize("extra", [0, 1, 2, 3, 4, 15, 16, 20, 31])
def test_entries_follow_each_other_at_64_bytes(extra):
    channels = [CHANNEL + "x" * (extra + index) for index in range(4)]
    report = read(b"".join(entry(each, SOURCE + "y" * extra) for each in channels) + bytes(64))
    assert [loss.channel for loss in report.losses] == channels
    assert {loss.source for loss in report.losses} == {SOURCE + "y" * extra}


def test_an_entry_that_is_being_written_is_not_read():
    assert len(read(entry() + entry(count=0) + entry()).losses) == 1


def test_all_entries_of_a_full_report_are_read():
    assert len(read(entry() * 3).losses) == 3


@pytest.mark.parametrize("length", [-1, 1000, 2**31 - 1])
@pytest.mark.parametrize("at", [40, 40 + 4 + 36])
def test_a_text_beyond_the_end_is_damage(length, at):
    content = bytearray(entry() + entry())
    assert struct.unpack_from("<i", content, 128 + at)[0] in (len(CHANNEL), len(SOURCE))
    struct.pack_into("<i", content, 128 + at, length)
    report = read(content)
    assert len(report.losses) == 1
    assert report.problem.startswith("entry 1 at 128")


@given(st.binary(max_size=512))
def test_arbitrary_bytes_have_a_result(content):
    report = read(content)
    assert len(report.losses) <= len(content) // 48
