"""The traffic of a calibration, inside a host: `python -m harness.calibration.probe send|sink ...`.

    | DATA header 32 | number 8 | filling |     one frame a datagram, to a port of the case

Sends at a steady pace and never catches up: what is late stays late, so that the pace asked for is
an upper bound. The sink owns the port, so that the far host answers nothing; the captures listen.
"""

import argparse
import signal
import socket
import struct
import sys
import time

HEADER = struct.Struct("<iBBHiiiiq")
NUMBER = struct.Struct("<q")
FRAME_LENGTH = 256
TERM_LENGTH = 65_536
SESSION_ID = 4_711
STREAM_ID = 1_001
READY = "ready"
_DATA = 1
_WHOLE_MESSAGE = 0xC0
_SLEEP_MIN_S = 100e-6


def frame(number: int) -> bytes:
    """The DATA frame with this number."""
    term_count, offset = divmod(number * FRAME_LENGTH, TERM_LENGTH)
    header = HEADER.pack(
        FRAME_LENGTH, 0, _WHOLE_MESSAGE, _DATA, offset, SESSION_ID, STREAM_ID, term_count, 0
    )
    filling = bytes(FRAME_LENGTH - HEADER.size - NUMBER.size)
    return header + NUMBER.pack(number) + filling


def send(address: str, port: int, packets: int, packets_per_s: int) -> None:
    """Send so many numbered frames at a pace."""
    interval_s = 1.0 / packets_per_s
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, port))
        due_s = time.perf_counter()
        for number in range(packets):
            while (ahead_s := due_s - time.perf_counter()) > 0:
                if ahead_s > _SLEEP_MIN_S:
                    time.sleep(ahead_s - _SLEEP_MIN_S / 2)
            sender.send(frame(number))
            due_s = max(due_s, time.perf_counter() - interval_s) + interval_s


def sink(port: int) -> None:
    """Own a port until asked to end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner:
        owner.bind(("", port))
        print(READY, flush=True)
        signal.sigwait({signal.SIGTERM})


def main() -> int:
    """Do one of both. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.calibration.probe")
    parser.add_argument("role", choices=["send", "sink"])
    parser.add_argument("--address", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--packets", type=int, default=0)
    parser.add_argument("--packets-per-s", type=int, default=1)
    asked = parser.parse_args()
    if asked.role == "send":
        send(asked.address, asked.port, asked.packets, asked.packets_per_s)
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        sink(asked.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
