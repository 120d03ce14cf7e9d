"""The times of deliveries do not include the time that the subscriber's files take."""

import io

import numpy as np

from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME
from windtunnel.harness.workload.progress import Progress
from windtunnel.harness.workload.subscriber import Application


class Header:
    position, session_id = 64, 1


def test_a_message_is_delivered_before_it_is_written_to_its_file():
    now_ns = 1_000

    class SlowFile(io.BytesIO):
        def write(self, content):
            nonlocal now_ns
            now_ns += 700
            return super().write(content)

    messages, times = SlowFile(), io.BytesIO()
    application = Application(
        messages, io.BytesIO(), Progress(1 << 20), times=times, flip_byte=False,
        wall_clock_ns=lambda: now_ns,
    )  # fmt: skip
    for _ in range(2):
        application._on_message(memoryview(b"12345678"), Header())
    found = np.frombuffer(times.getvalue(), DELIVERY_TIME)
    assert found["time_ns"].tolist() == [1_000, 1_700]
    assert messages.getvalue() == 2 * b"12345678"
