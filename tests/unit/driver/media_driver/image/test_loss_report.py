"""The loss report matches Aeron byte for byte, until the file is full."""

from pathlib import Path

import numpy as np
import pytest

from windtunnel.driver.media_driver.image import loss_report
from windtunnel.driver.media_driver.image.loss_report import LossReport

GOLDEN = Path(__file__).parents[4] / "golden" / "loss-report"
CHANNEL, SOURCE = "aeron:udp?endpoint=10.0.0.1:20121", "10.0.0.2:40456"


def golden(name):
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text())


def field(content, at, length=8):
    return int.from_bytes(content[at : at + length], "little", signed=True)


def text(content, at):
    length = field(content, at, 4)
    return content[at + 4 : at + 4 + length].decode(), at + 4 + length


def appended(report, *channels):
    """Append entries of images with the given channels, and return their offsets."""
    places, end = [], 0
    for session, channel in enumerate(channels):
        entry = loss_report.make_entry(session, 1001, channel, SOURCE)
        at, end = loss_report.append(report.report, end, entry, 32, 5)
        places.append(at)
    return places


@pytest.mark.parametrize("name", ["reliable", "java"])
def test_an_entry_equals_that_of_aeron(name, tmp_path):
    expected = golden(name)
    count, lost, first_ms, last_ms = (field(expected, at) for at in (0, 8, 16, 24))
    session, stream = field(expected, 32, 4), field(expected, 36, 4)
    channel, end = text(expected, 40)
    source, _ = text(expected, -(-end // 4) * 4)
    assert (count > 1, first_ms < last_ms, stream) == (True, True, 1001)
    report = LossReport(tmp_path, 4096)
    entry = loss_report.make_entry(session, stream, channel, source)
    at, next_at = loss_report.append(report.report, 0, entry, 100, first_ms)
    assert (at, next_at) == (0, -(-entry.size // 64) * 64)
    for _ in range(count - 2):
        loss_report.add(report.report, at, 0, last_ms - 1)
    loss_report.add(report.report, at, lost - 100, last_ms)
    assert report.report[: len(expected)].tobytes() == expected
    report.close()


def test_entries_are_aligned_to_64_bytes_and_do_not_overlap(tmp_path):
    report = LossReport(tmp_path, 4096)
    places = appended(report, *(CHANNEL + "x" * i for i in range(4)))
    assert places[0] == 0
    assert all(place % loss_report.ENTRY_ALIGNMENT == 0 for place in places)
    before = report.report.copy()
    loss_report.add(report.report, places[1], 64, 9)
    changed = np.flatnonzero(report.report != before)
    assert set(changed) <= set(range(places[1], places[1] + 32))
    assert field(report.report.tobytes(), places[1] + loss_report.TOTAL_BYTES_LOST) == 96
    assert (tmp_path / loss_report.FILE_NAME).read_bytes()[:8] == b"\1" + bytes(7)
    report.close()


def test_a_full_report_rejects_entries(tmp_path):
    report = LossReport(tmp_path, 4096)
    length = 4096 - (loss_report.CHANNEL + 8 + len(SOURCE))
    room = length - length % 4
    channels = ("x" * (room + 1), "x" * room, "")
    assert appended(report, *channels) == [loss_report.FULL, 0, loss_report.FULL]
    report.close()
    assert report.report.size == 0


def test_the_file_consists_of_whole_pages(tmp_path):
    report = LossReport(tmp_path, 5000)
    assert report.length == 8192
    report.close()
