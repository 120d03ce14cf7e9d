"""Measures how an attack affects a driver's other users, and compares the results with fixed
limits.

    latency      p99 of a stream at 10,000 hostile packets/s, as a multiple of the p99 without them
    memory       growth of the driver's resident memory during the attack
    output       bytes sent per received byte, to addresses that only sent SETUPs of new sessions
    new reader   time until a new subscriber has its image, with dynamic multi-destination-cast
    new session  time until a new publisher of the attacked stream has its image

Rounds with and without the attack alternate, so that a change in the machine's load affects both.
"""

import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.bench.subject import SUBJECTS
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.driver_attack import SETTINGS
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.frames import Target, frames_of
from windtunnel.harness.orchestrate.processes.process import (
    LocalProcess,
    with_parent_death_signal,
)

RATE = 10_000
ROUNDS = 4
ROUND_S = 2.0
MESSAGE_INTERVAL_S = 0.001
SETUPS, SETUP_PATIENCE_S = 64, 6.0
JOINS, JOIN_PATIENCE_S = 5, 20.0
STREAM_ID, SESSION_ID, TERM_ID = 5_000, 4_000, 100
LIMITS = {
    "latency_ratio": 3.0,
    "memory_growth_mib": 64.0,
    "bytes_out_per_byte_in": 3.0,
    "new_reader_s": 3.0,
    "new_session_s": 3.0,
}
_STAMP = struct.Struct("<q")


@dataclass(frozen=True)
class Figures:
    """The measured effects of an attack on one driver in one threading mode."""

    driver: str
    mode: str
    quiet_p99_us: float
    hostile_p99_us: float
    latency_ratio: float
    memory_growth_mib: float
    bytes_out_per_byte_in: float
    new_reader_s: float
    new_session_s: float
    hostile_packets_per_s: float

    def exceeded(self) -> list[str]:
        """Return the names of the measured values that exceed their limits."""
        values = asdict(self)
        return [name for name, limit in LIMITS.items() if values[name] > limit]


class LatencyStream:
    """A stream that measures latency: each message contains the time at which it was offered."""

    def __init__(self, aeron: Aeron, port: int) -> None:
        channel = f"aeron:udp?endpoint={LOOPBACK}:{port}"
        self._aeron, self._channel = aeron, f"{channel}|term-length=64k"
        place = f"|term-length=64k|session-id={SESSION_ID}"
        place += f"|init-term-id={TERM_ID}|term-id={TERM_ID}|term-offset=0"
        self._subscription = aeron.add_subscription(channel, STREAM_ID)
        self._publication = aeron.add_exclusive_publication(channel + place, STREAM_ID)
        self._samples: list[int] = []
        deadline_s = time.monotonic() + JOIN_PATIENCE_S
        while not self._publication.is_connected or not self._subscription.images:
            if time.monotonic() > deadline_s:
                raise Violation(
                    f"the stream that measures latency did not connect within {JOIN_PATIENCE_S:g} s"
                )
            time.sleep(0.001)

    def _on_message(self, payload: memoryview, header: object) -> None:
        (sent_ns,) = _STAMP.unpack_from(payload)
        self._samples.append(time.monotonic_ns() - sent_ns)

    def slowest_session(self) -> float:
        """Add publications to the stream, one at a time. Returns the longest time in seconds until
        the subscription had the image of one. Raises Violation if the driver refuses one.
        """
        slowest_s = 0.0
        for _ in range(JOINS):
            began_s = time.monotonic()
            try:
                publication = self._aeron.add_exclusive_publication(self._channel, STREAM_ID)
            except DriverError as error:
                text = f"the driver refused a new publication of the stream: {error}"
                raise Violation(text) from error
            with publication:
                find = partial(self._subscription.image_by_session_id, publication.session_id)
                _wait(began_s, find)
            slowest_s = max(slowest_s, time.monotonic() - began_s)
        return slowest_s

    def run(self, duration_s: float) -> list[int]:
        """Offer a message every millisecond, and return the latency of each message that arrived,
        in nanoseconds.
        """
        self._samples = []
        now_s = time.monotonic()
        end_s, next_s = now_s + duration_s, now_s
        while now_s < end_s:
            if now_s >= next_s:
                self._publication.offer(_STAMP.pack(time.monotonic_ns()))
                next_s = max(next_s + MESSAGE_INTERVAL_S, now_s)
            self._subscription.poll(self._on_message, 10)
            now_s = time.monotonic()
        return self._samples


def percentile(samples: list[int], share: float) -> float:
    """Return a percentile of the samples: the value at index `share` x count in ascending order."""
    ordered = sorted(samples)
    return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))])


def measure(name: str, mode: str, folder: Path, seed: int) -> Figures:
    """Measure how an attack affects one driver in one threading mode. Raises Violation if the
    driver fails, or LabError if it cannot be started.
    """
    settings = BenchSettings(threading_mode=mode, both_set=SETTINGS)
    with DriverHost(SUBJECTS[name], settings, folder / f"{name}-{mode}") as host:
        context = ClientContext(dir=host.directory, driver_timeout_ms=30_000)
        with Aeron(context=context) as aeron:
            port = free_ports(32)[0]
            stream = LatencyStream(aeron, port)
            stream.run(ROUND_S)
            output = _bytes_out_per_byte_in(port)
            resident = host.memory().resident
            quiet: list[int] = []
            hostile: list[int] = []
            rates: list[float] = []
            grown = 0
            for number in range(ROUNDS):
                quiet += stream.run(ROUND_S)
                with Flood(folder, port, seed + number) as flood:
                    hostile += stream.run(ROUND_S)
                    rates.append(flood.rate())
                grown = max(grown, host.memory().resident - resident)
            with Flood(folder, port, seed + ROUNDS):
                reader_s = _slowest_reader(aeron, port + 4)
                session_s = stream.slowest_session()
            if not host.is_alive:
                raise Violation(f"the driver exited: {host.last_words()}")
        before, after = percentile(quiet, 0.99), percentile(hostile, 0.99)
        return Figures(
            driver=name, mode=mode, quiet_p99_us=before / 1e3, hostile_p99_us=after / 1e3,
            latency_ratio=after / before, memory_growth_mib=grown / (1 << 20),
            bytes_out_per_byte_in=output, new_reader_s=reader_s,
            new_session_s=session_s, hostile_packets_per_s=sum(rates) / len(rates),
        )  # fmt: skip


def _bytes_out_per_byte_in(port: int) -> float:
    """Measure how many bytes the driver sends for each byte of a SETUP. Each of several sockets
    sends one SETUP of a new session. Returns the ratio.
    """
    sockets, sent, received = [], 0, 0
    try:
        for number in range(SETUPS):
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind((LOOPBACK, 0))
            made.setblocking(False)
            sockets.append(made)
            target = Target(LOOPBACK, port, 9_000 + number, STREAM_ID, TERM_ID)
            sent += made.sendto(frames_of(target, 0)[3], (LOOPBACK, port))
        time.sleep(SETUP_PATIENCE_S)
        for made in sockets:
            try:
                while True:
                    received += len(made.recv(65_536))
            except BlockingIOError:
                pass
    finally:
        for made in sockets:
            made.close()
    return received / sent


def _slowest_reader(aeron: Aeron, port: int) -> float:
    """Add subscribers to a publication, one at a time. Returns the longest time in seconds that a
    subscriber waited for its image.
    """
    control = f"control={LOOPBACK}:{port}"
    publication = aeron.add_exclusive_publication(
        f"aeron:udp?{control}|control-mode=dynamic|term-length=64k", STREAM_ID + 1
    )
    slowest_s = 0.0
    for number in range(JOINS):
        began_s = time.monotonic()
        channel = f"aeron:udp?endpoint={LOOPBACK}:{port + 1 + number}|{control}"
        with aeron.add_subscription(channel, STREAM_ID + 1) as subscription:
            _wait(began_s, lambda: subscription.images)
        slowest_s = max(slowest_s, time.monotonic() - began_s)
    publication.close()
    return slowest_s


def _wait(began_s: float, condition: Callable[[], object]) -> None:
    while not condition() and time.monotonic() - began_s < JOIN_PATIENCE_S:
        time.sleep(0.001)


class Flood:
    """A process that sends hostile packets to a stream's ports at a constant rate, as a context
    manager.
    """

    def __init__(self, folder: Path, port: int, seed: int) -> None:
        self._log = folder / "flood.log"
        self._command = with_parent_death_signal([
            sys.executable, "-m", "windtunnel.harness.fuzz.flood",
            "--port", str(port), "--rate", str(RATE), "--seed", str(seed),
        ])  # fmt: skip

    def __enter__(self) -> "Flood":
        self._log.unlink(missing_ok=True)
        self._process = LocalProcess(
            "flood", self._command, env=os.environ, cwd=Path.cwd(), log=self._log
        )
        deadline_s = time.monotonic() + JOIN_PATIENCE_S * 5
        while "sending" not in self._log.read_text():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise Violation(
                    "the process that floods the driver with packets did not start: "
                    f"{self._process.tail()}"
                )
            time.sleep(0.01)
        return self

    def rate(self) -> float:
        """Return the average number of packets sent per second so far."""
        lines = self._log.read_text().splitlines()
        words = lines[-1].split()
        return float(words[1]) if len(words) > 1 else 0.0

    def __exit__(self, *_: object) -> None:
        self._process.kill()
