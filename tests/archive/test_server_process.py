"""The archive as a process with its own driver: start, request, shutdown and kill."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from windtunnel.driver.archive.protocol.codec import decode, encode
from windtunnel.driver.archive.protocol.codes import PROTOCOL_VERSION, ControlResponseCode
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest, AuthConnectRequest
from windtunnel.driver.archive.protocol.responses import ControlResponse
from windtunnel.driver.archive.storage import mark_file
from windtunnel.driver.client.aeron import Aeron

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 300
"""The time limit of the first start, which compiles the driver."""
CHANNEL = "aeron:ipc?term-length=64k"


class Process:
    """`archive run --with-driver` in a folder."""

    def __init__(self, folder, *options):
        self.archive, self.aeron = folder / "archive", folder / "aeron"
        command = [
            sys.executable, "-P", "-m", "windtunnel.driver.archive", "run", "--with-driver",
            "--dir", str(self.archive), "--aeron-dir", str(self.aeron),
            "-Daeron.archive.control.channel.enabled=false",
            "-Daeron.archive.control.response.channel=aeron:udp?endpoint=localhost:0",
            "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
            "-Daeron.archive.connect.timeout=60s",
            "-Daeron.archive.id=77", "-Daeron.threading.mode=SHARED", *options,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        # A process that hangs is killed, which ends the reading of its output.
        self._timer = threading.Timer(LIMIT_S, self.process.kill)
        self._timer.start()

    def ready(self):
        line = self.process.stdout.readline()
        assert line.startswith("archive ready "), (line, self.process.stderr.read())
        return dict(word.split("=", 1) for word in line.split()[2:])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        out, err = self.process.communicate()
        self._timer.cancel()
        return self.process.returncode, out, err

    def header(self):
        return mark_file.read_header(self.archive / mark_file.FILE_NAME)


@pytest.fixture
def process(tmp_path, request):
    started = Process(tmp_path, *getattr(request, "param", ()))
    yield started
    started.end(signal.SIGKILL)


def request_archive_id(aeron):
    """Connect and request the archive's id over IPC."""
    received = []
    responses = aeron.add_subscription(CHANNEL, 20)
    requests = aeron.add_exclusive_publication(CHANNEL, 10)
    done = threading.Event()

    def offer(message):
        while not done.wait(0.001) and requests.offer(encode(message)) <= 0:
            pass

    def response_to(correlation_id):
        # The response to the connect request may be repeated before and after any other message.
        while not done.wait(0.001):
            responses.poll(lambda payload, header: received.append(decode(payload)))
            for each in received:
                if isinstance(each, ControlResponse) and each.correlation_id == correlation_id:
                    return each
        return None

    timer = threading.Timer(60, done.set)
    timer.start()
    try:
        offer(
            AuthConnectRequest(
                correlation_id=1, response_stream_id=20, version=PROTOCOL_VERSION,
                response_channel=CHANNEL, encoded_credentials=b"", client_info="",
            )
        )  # fmt: skip
        session = response_to(1)
        assert session is not None
        assert session.code == ControlResponseCode.OK
        offer(ArchiveIdRequest(control_session_id=session.control_session_id, correlation_id=2))
        found = response_to(2)
        return None if found is None else found.relevant_id
    finally:
        timer.cancel()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize(
    "process",
    [("-Daeron.archive.threading.mode=DEDICATED",), ("-Daeron.archive.threading.mode=SHARED",)],
    indirect=True, ids=["dedicated", "shared"],
)  # fmt: skip
@pytest.mark.timeout(2 * LIMIT_S)
def test_an_archive_responds_and_shuts_down_cleanly(process):
    assert process.ready()["id"] == "77"
    assert process.header().activity_timestamp > 0
    assert process.header().pid == process.process.pid
    with Aeron(process.aeron) as aeron:
        assert request_archive_id(aeron) == 77
    assert process.end() == (0, "", "")
    assert process.header().activity_timestamp == -1


@pytest.mark.timeout(2 * LIMIT_S)
def test_the_driver_ends_with_an_archive_that_is_killed(process):
    process.ready()
    with Aeron(process.aeron) as aeron:
        pid = aeron._conductor._cnc.header.pid
    assert process.end(signal.SIGKILL)[0] == -signal.SIGKILL
    gone = threading.Event()
    timer = threading.Timer(60, gone.set)
    timer.start()
    while Path(f"/proc/{pid}").exists() and not gone.wait(0.05):
        pass
    timer.cancel()
    assert not Path(f"/proc/{pid}").exists()
    assert process.header().activity_timestamp > 0
