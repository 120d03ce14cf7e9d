"""A capture on a busy interface counts no lost packets that its filter would reject."""

import sys
import time

import pytest

from tests.netns.test_namespaces import WAIT_S, lab, output_of, wait_for  # noqa: F401
from windtunnel.harness.artifact.host.host_facts import CaptureFacts
from windtunnel.harness.capture import sniffer
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.processes.watch import WatchedProcess, wait_until_ready

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
CAPTURES = 5
"""In one of them a frame probably arrives in the millisecond before the filter is installed."""
DATAGRAMS = 100

SEND_OTHER_FRAMES = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
frame = b"\\xff" * 6 + b"\\x02" + bytes(5) + b"\\x08\\x06" + bytes(46)
while True:
    s.send(frame)
    time.sleep(1e-5)
"""
"""Sends frames that are no UDP, until it is terminated."""

SEND_DATAGRAMS = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    s.sendto(b"x", (sys.argv[1], 9))
"""


@pytest.mark.full
def test_frames_before_the_filter_is_installed_are_not_counted_as_lost(lab, tmp_path):  # noqa: F811
    interface = lab.interface("a")
    other_frames = [sys.executable, "-c", SEND_OTHER_FRAMES, interface]
    other_sender = lab.spawn("a", other_frames, log=tmp_path / "other-frames.log")
    for index in range(CAPTURES):
        file, log = tmp_path / f"{index}.pcap", tmp_path / f"{index}.log"
        process = lab.spawn("a", sniffer.command(interface, str(file)), log=log)
        capture = WatchedProcess("a/capture", process, "capture", log)

        def wait(ready, capture=capture):
            wait_until_ready([capture], ready, required=[], timeout_s=WAIT_S)

        wait(lambda line: sniffer.READY in line)
        process.send_signal(sniffer.REPORT_SIGNAL)
        wait(sniffer.is_report)
        send = [sys.executable, "-c", SEND_DATAGRAMS, lab.address("b"), str(DATAGRAMS)]
        output_of(lab, "a", tmp_path, *send)
        settling = sniffer.Settling(time.monotonic())

        def is_over(process=process, capture=capture, settling=settling):
            process.send_signal(sniffer.REPORT_SIGNAL)
            for line in capture.new_lines():
                settling.update(line, time.monotonic())
            return settling.is_over(time.monotonic())

        wait_for(is_over)
        process.terminate()
        assert process.wait(WAIT_S) == 0
        assert sniffer.statistics(log.read_text()) == CaptureFacts(DATAGRAMS, 0), log.read_text()
    other_sender.terminate()
    assert other_sender.wait(WAIT_S) is not None
