"""The tap's records, compared with the bytes of the log, and the application's sabotage."""

import io
import zlib

import numpy as np

from tests.unit.driver.client.own_stream import TERM_LENGTH, OwnStream
from windtunnel.harness.artifact.host.delivery import DELIVERY
from windtunnel.harness.artifact.host.frame_seen import FRAME_SEEN, headers
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.subscriber import Application
from windtunnel.harness.workload.tap import Tap

MESSAGES = [b"", b"one", bytes(range(256)) * 20]


def frames_of(log, end):
    """Parse the log in the simplest way: (position, header, payload) of each frame."""
    at, found = 0, []
    while at < end:
        length = int.from_bytes(log[at : at + 4].tobytes(), "little")
        is_pad = log[at + 6] == 0
        payload = b"" if is_pad else log[at + 32 : at + length].tobytes()
        found.append((at, log[at : at + 32].tobytes(), payload))
        at += (length + 31) // 32 * 32
    return found


def test_every_frame_is_recorded_padding_included(tmp_path):
    stream = OwnStream(tmp_path)
    end = stream.write(*MESSAGES, *[bytes([n]) * 7_000 for n in range(10)])
    assert end > TERM_LENGTH
    written = io.BytesIO()
    tap = Tap(written, sum(map(len, MESSAGES)))
    while tap.poll(stream.image):
        pass
    seen = np.frombuffer(written.getvalue(), FRAME_SEEN)
    expected = frames_of(stream.mapped.log, end)
    assert tap.frame_count == len(seen) == len(expected)
    assert seen["position"].tolist() == [at for at, _, _ in expected]
    assert [row["header"].tobytes() for row in seen] == [header for _, header, _ in expected]
    sums = [zlib.crc32(payload) if payload else 0 for _, _, payload in expected]
    assert seen["payload_crc32"].tolist() == sums
    assert (headers(seen)["type"] == 0).sum() == 1
    assert (np.diff(seen["time_ns"]) >= 0).all()
    assert stream.image.position == end


def taken_by_an_application(stream, *, flip_byte):
    messages, index, progress = io.BytesIO(), io.BytesIO(), Progress(1)
    application = Application(messages, index, progress, times=io.BytesIO(), flip_byte=flip_byte)
    while application.poll(stream.image):
        pass
    assert progress.count_bytes == len(messages.getvalue())
    return messages.getvalue(), np.frombuffer(index.getvalue(), DELIVERY)


def test_an_application_writes_consecutive_messages_and_their_ends(tmp_path):
    stream = OwnStream(tmp_path)
    ends = [stream.write(message) for message in MESSAGES]
    taken, index = taken_by_an_application(stream, flip_byte=False)
    assert taken == b"".join(MESSAGES)
    assert index["length"].tolist() == [len(message) for message in MESSAGES]
    assert index["position"].tolist() == ends
    assert set(index["session_id"].tolist()) == {stream.image.session_id}


def test_a_broken_application_differs_in_one_byte(tmp_path):
    stream = OwnStream(tmp_path)
    stream.write(*MESSAGES[1:])
    taken, _ = taken_by_an_application(stream, flip_byte=True)
    wrong = [at for at, (a, b) in enumerate(zip(taken, b"".join(MESSAGES), strict=True)) if a != b]
    assert wrong == [1]
