"""The traffic generator and sink of a calibration, with one process on each host.

    python -m windtunnel.harness.calibration.probe send|flood|sink

    | DATA header 32 | number 8 | padding |     one frame per datagram, to a port of the case

`send` keeps a steady pace and never catches up after a delay, so the requested pace is an upper
limit. `flood` sends 1 kB frames in bursts, catches up, and prints how many seconds it took. The
sink binds the port, so the receiving host sends no ICMP errors. The captures or the relay count the
packets.
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
FLOOD_LENGTH = 1_024
FLOOD_FRAMES = TERM_LENGTH // FLOOD_LENGTH
"""Number of frames in a burst. They fill one term, so only the term id changes between bursts."""
TERM_ID, TERM_ID_AT = struct.Struct("<i"), 20
READY = "ready"
_DATA = 1
_WHOLE_MESSAGE = 0xC0
_SLEEP_MIN_S = 100e-6


def frame(number: int, length: int = FRAME_LENGTH) -> bytes:
    """Build the DATA frame with this packet number."""
    term_count, offset = divmod(number * length, TERM_LENGTH)
    header = HEADER.pack(
        length, 0, _WHOLE_MESSAGE, _DATA, offset, SESSION_ID, STREAM_ID, term_count, 0
    )
    filling = bytes(length - HEADER.size - NUMBER.size)
    return header + NUMBER.pack(number) + filling


def send(address: str, port: int, packets: int, packets_per_s: int) -> None:
    """Send numbered frames to an address at a steady pace."""
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


def flood(address: str, port: int, packets: int, packets_per_s: int) -> float:
    """Send large frames to an address in bursts. Returns the duration in seconds."""
    frames = [bytearray(frame(number, FLOOD_LENGTH)) for number in range(FLOOD_FRAMES)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((address, port))
        began_s = time.perf_counter()
        for first in range(0, packets, FLOOD_FRAMES):
            while first / packets_per_s > time.perf_counter() - began_s:
                time.sleep(0)
            for each in frames[: packets - first]:
                sender.send(each)
            for each in frames:
                TERM_ID.pack_into(each, TERM_ID_AT, TERM_ID.unpack_from(each, TERM_ID_AT)[0] + 1)
        return time.perf_counter() - began_s


def sink(port: int) -> None:
    """Bind a UDP port, and keep it bound until SIGTERM."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as owner:
        owner.bind(("", port))
        print(READY, flush=True)
        signal.sigwait({signal.SIGTERM})


def main() -> int:
    """Run one of the roles send, flood and sink. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.calibration.probe")
    parser.add_argument("role", choices=["send", "flood", "sink"])
    parser.add_argument("--address", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--packets", type=int, default=0)
    parser.add_argument("--packets-per-s", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.role == "send":
        send(arguments.address, arguments.port, arguments.packets, arguments.packets_per_s)
    elif arguments.role == "flood":
        print(flood(arguments.address, arguments.port, arguments.packets, arguments.packets_per_s))
    else:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        sink(arguments.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
