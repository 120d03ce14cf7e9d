"""Compiles every kernel of the relay and of the judge into the cache before a run needs it.

    python -m windtunnel.harness.warm_up [relay] [judge] [analysis]

The command prints one line per part with its duration in seconds. It requires no privileges: the
relay runs one iteration on a pair of idle sockets, and the judge's file readers read minimal files.
"""

import argparse
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from windtunnel.driver.kernels.warm_up_progress import part
from windtunnel.driver.kernels.warm_up_signals import end_on_signals
from windtunnel.harness.dissect.archive_files.recorded_log import IDENTITY_LENGTH, first_wrong_frame
from windtunnel.harness.dissect.capture.capture_stream import CaptureStream, Reading
from windtunnel.harness.dissect.capture.pcap import read_capture
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.dissect.driver_files.log_walk import RESULT_LENGTH, compare_logs
from windtunnel.harness.middlebox.__main__ import assemble
from windtunnel.harness.middlebox.impairment.impairment import is_on
from windtunnel.harness.middlebox.relay.port import Port
from windtunnel.harness.middlebox.relay.relay import run
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload, TrafficCase
from windtunnel.harness.verdict.checks.retransmission.retransmit_checks import find_unrequested
from windtunnel.harness.verdict.core.compare import (
    first_difference,
    first_differing_pair,
    first_wrong_message,
)

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
PORT = 24_325
MTU = 1_500


def _case() -> Case:
    """Build a minimal case, which is a scenario with all seeds and addresses resolved. Its contents
    do not affect the types of the compiled kernels.
    """
    traffic = TrafficCase(
        id="one", ordinal=0, stream_id=1001, from_host="a", to_host="b", publication="exclusive",
        channel="", receive="", port=PORT, reliable=True, term_length=65_536, mtu=1_408,
        initial_term_id=0, initial_position=0, receiver_window_bytes=None, total_bytes=1,
        shortest_bytes=1, longest_bytes=1,
    )  # fmt: skip
    return Case(
        name="warm-up",
        about="",
        seed=1,
        fidelity="netns",
        hosts=(HostCase(name="a", address="10.0.0.1"), HostCase(name="b", address="10.0.0.2")),
        payload=Payload(path="", sha256="", length_bytes=1),
        traffic=(traffic,),
        faults=(),
        expect=(),
        wall_ns=1,
    )


def relay(_folder: Path) -> None:
    """Compile every middlebox kernel by running one iteration of the relay."""
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with left, right:
        mac = bytes(6)
        ports = Port("left", left, mac, None, MTU), Port("right", right, mac, None, MTU)
        made, engine = assemble(_case(), ports)
        run(made, engine, 0, False)
        is_on(made.impairments, 0)


def judge(folder: Path) -> None:
    """Compile the judge's kernels by reading and comparing minimal captures and log buffers."""
    capture = folder / "a.pcap"
    capture.write_bytes(PCAP_HEADER)
    read_capture(capture, (PORT,))
    lengths = np.array([1, 2_000], dtype=np.int64)
    expected = expected_log(lengths, 1_408, 65_536)
    file = folder / "bytes"
    file.write_bytes(bytes(4_096))
    mapped = np.asarray(np.memmap(file, dtype=np.uint8, mode="r"))
    starts = np.array([0, 1], dtype=np.int64)
    first_wrong_message(mapped, mapped, lengths, starts)
    first_difference(mapped, 0, mapped, 0, 1)
    first_differing_pair(mapped, starts, mapped, starts, lengths)
    stretch, fills = mapped.copy(), np.zeros((1, 2), dtype=np.int64)
    compare_logs(stretch, stretch, 0, 0, fills, np.zeros(RESULT_LENGTH, dtype=np.int64))
    find_unrequested(*(starts,) * 6, np.zeros(len(starts), dtype=np.bool_))
    identity = np.ones(IDENTITY_LENGTH, dtype=np.int64)
    first_wrong_frame(mapped, 0, expected.frames, mapped, identity)


def analysis(folder: Path) -> None:
    """Compile the capture analysis kernels by reading a minimal capture."""
    capture = folder / "b.pcap"
    capture.write_bytes(PCAP_HEADER + bytes(40))
    with capture.open("rb") as file:
        for _ in CaptureStream(file, Reading()).batches():
            pass


PARTS: dict[str, Callable[[Path], None]] = {"relay": relay, "judge": judge, "analysis": analysis}
"""Part name -> function that compiles the part's kernels, using an empty folder."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compile the kernels of the given parts, or of all parts if none is given. Returns the exit
    code.
    """
    parser = argparse.ArgumentParser(prog="python -m windtunnel.harness.warm_up")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}")
    for name in parser.parse_args(argv).parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="windtunnel-warm-up-") as folder, part(name):
            PARTS[name](Path(folder))
    return 0


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main())
