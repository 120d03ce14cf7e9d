"""Makes a correct driver seem to misbehave, from outside and while a stream runs.

    lying-counter         adds to the driver's counter rcv-naks-sent through a separate mapping
    nak-when-unreliable   sends one NAK for the running session, from the stream's own port

The saboteur is used to check that the judge detects violations. It runs on the receiving host.
Streams over IPv6 are not supported.
"""

import socket
import struct
import time
from pathlib import Path

import numpy as np

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.harness.dissect.driver_files.cnc_file import read_cnc
from windtunnel.harness.dissect.driver_files.counter_key import (
    RECEIVER_NAKS_SENT,
    session_and_stream,
)
from windtunnel.harness.scenario.resolved.case import TrafficCase
from windtunnel.harness.workload.options import LYING_COUNTER, Options
from windtunnel.harness.workload.stop import Stop, SubjectError

IDLE_S = 0.001
TIMEOUT_S = 300.0
"""Timeout for the start of the stream. Drivers may have to compile first."""

INCREMENT = 3
INCREMENTS = 5
INCREMENT_INTERVAL_S = 0.02

NAK_TYPE = 2
NAK_BYTES = 32
_NAK = struct.Struct("<iBBHiiiii")
"""Frame length, version, flags, type, session, stream, term id, term offset and length."""

NO_CHECKSUM = 0
_UDP = struct.Struct(">HHHH")
"""Source port, destination port, length and checksum."""


def run(options: Options, stop: Stop) -> None:
    """Inject the fault. Raises SubjectError if the stream does not appear in time."""
    if options.sabotage == LYING_COUNTER:
        falsify_counter(options.aeron_dir, options.traffic.stream_id, stop)
    else:
        send_nak(options.aeron_dir, options.traffic, stop)


def falsify_counter(aeron_dir: Path, stream_id: int, stop: Stop) -> None:
    """Falsify the stream's counter of sent NAKs. The counter is increased several times, because
    the driver may overwrite a change.
    """
    path = aeron_dir / "cnc.dat"
    deadline_s = time.monotonic() + TIMEOUT_S
    # Length and sections do not change once the file is complete, so one mapping is enough.
    cnc = read_cnc(np.asarray(np.memmap(path, dtype=np.uint8, mode="r+")))
    if cnc is None:
        raise SubjectError(f"{path}: expected a complete cnc file, found an unfinished one")
    while True:
        found = [
            each.counter_id
            for each in cnc.counters()
            if each.type_id == RECEIVER_NAKS_SENT and session_and_stream(each)[1] == stream_id
        ]
        if found:
            break
        _wait(f"no rcv-naks-sent counter of stream {stream_id}", deadline_s, stop)
    for _ in range(INCREMENTS):
        cnc.values["value"][found[0]] += INCREMENT
        time.sleep(INCREMENT_INTERVAL_S)
        stop.check()


def send_nak(aeron_dir: Path, traffic: TrafficCase, stop: Stop) -> None:
    """Send one NAK for the current position of a stream."""
    deadline_s = time.monotonic() + TIMEOUT_S
    with (
        Aeron(aeron_dir) as aeron,
        aeron.add_subscription(traffic.receive, traffic.stream_id) as subscription,
    ):
        while not (images := subscription.images):
            _wait(f"no image of stream {traffic.stream_id}", deadline_s, stop)
        frame, source = nak_of(images[0], traffic.stream_id), images[0].source_identity
    send_from_port(traffic.port, frame, source)


def nak_of(image: Image, stream_id: int) -> bytes:
    """Build a NAK for the first bytes after an image's position."""
    term_count, term_offset = divmod(image.position, image.term_length)
    term_id = (image.initial_term_id + term_count + (1 << 31)) % (1 << 32) - (1 << 31)
    return _NAK.pack(
        _NAK.size, 0, 0, NAK_TYPE, image.session_id, stream_id, term_id, term_offset, NAK_BYTES
    )


def send_from_port(port: int, frame: bytes, source_identity: str) -> None:
    """Send a datagram to a stream's source, from the port on which the stream arrives.

    The driver has bound that port exclusively, so the UDP header is built here. Its checksum may be
    omitted over IPv4. The caller needs the privilege to open raw sockets.
    """
    host, _, source_port = source_identity.rpartition(":")
    header = _UDP.pack(port, int(source_port), _UDP.size + len(frame), NO_CHECKSUM)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as sender:
        sender.sendto(header + frame, (host, 0))


def _wait(what: str, deadline_s: float, stop: Stop) -> None:
    stop.check()
    if time.monotonic() > deadline_s:
        raise SubjectError(f"{what} appeared within {TIMEOUT_S:g} s")
    time.sleep(IDLE_S)
