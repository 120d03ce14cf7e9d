"""Measures how an attack affects a driver's other users, and compares the results with fixed
limits.

    latency      p99 of a stream at 10,000 hostile packets/s, as a multiple of the p99 without them;
                 both are medians over the rounds
    memory       growth of the driver's resident memory during the attack
    output       bytes sent per received byte, to addresses that only sent SETUPs of new sessions
    new reader   time until a new subscriber has its image, with dynamic multi-destination-cast
    new session  time until a new publisher of the attacked stream has its image

Rounds with and without the attack alternate, so that a change in the machine's load affects both.
In rounds without the attack, the same program sends the same packets to sockets that are not read:
on few processors, sending alone makes others wait for a processor.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

from windtunnel.driver.client import Aeron, ClientContext
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.bench.subject import SUBJECTS
from windtunnel.harness.fuzz.checked_streams import LOOPBACK
from windtunnel.harness.fuzz.driver_attack import SETTINGS
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.frames import Target, frames_of
from windtunnel.harness.fuzz.latency_stream import (
    JOIN_PATIENCE_S,
    JOINS,
    STREAM_ID,
    TERM_ID,
    LatencyStream,
    percentile,
    wait,
)
from windtunnel.harness.orchestrate.processes.process import (
    LocalProcess,
    with_parent_death_signal,
)

COUNTERS = {"AERON_COUNTERS_BUFFER_LENGTH": str(64 << 20)}
"""Room for 524,288 counters. In DEDICATED mode, forged SETUPs use up the default number, 65,536, in
the C driver, which then refuses all further publications.
"""
RATE = 10_000
ROUNDS = 8
ROUND_S = 1.0
DECOY_OFFSET = 16
"""Difference between the first port of the stream and the first one that is not read."""
CONTROL_OFFSET = 4
"""Difference between the first port and the control port of the dynamic multi-destination-cast."""
SETUPS, SETUP_PATIENCE_S = 64, 6.0
LIMITS = {
    "latency_ratio": 3.0,
    "memory_growth_mib": 64.0,
    "bytes_out_per_byte_in": 3.0,
    "new_reader_s": 3.0,
    "new_session_s": 3.0,
}


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


def measure(name: str, mode: str, folder: Path, seed: int) -> Figures:
    """Measure how an attack affects one driver in one threading mode. Raises Violation if the
    driver fails, or LabError if it cannot be started.
    """
    settings = BenchSettings(threading_mode=mode, both_set=SETTINGS | COUNTERS)
    with DriverHost(SUBJECTS[name], settings, folder / f"{name}-{mode}") as host:
        context = ClientContext(dir=host.directory, driver_timeout_ms=30_000)
        with Aeron(context=context) as aeron:
            port = free_ports(32)[0]
            stream = LatencyStream(aeron, port)
            stream.run(ROUND_S)
            output = _bytes_out_per_byte_in(port)
            resident = host.memory().resident
            rounds = alternate(stream, folder, port, seed, lambda: host.memory().resident)
            with Flood(folder, port, seed + ROUNDS):
                reader_s = _slowest_reader(aeron, port + CONTROL_OFFSET)
                session_s = stream.slowest_session()
            if not host.is_alive:
                raise Violation(f"the driver exited: {host.last_words()}")
        before, after = median(rounds.quiet_p99s_ns), median(rounds.hostile_p99s_ns)
        return Figures(
            driver=name, mode=mode, quiet_p99_us=before / 1e3, hostile_p99_us=after / 1e3,
            latency_ratio=after / before,
            memory_growth_mib=(max(rounds.resident_bytes) - resident) / (1 << 20),
            bytes_out_per_byte_in=output, new_reader_s=reader_s,
            new_session_s=session_s, hostile_packets_per_s=mean(rounds.rates),
        )  # fmt: skip


@dataclass(frozen=True)
class Rounds:
    """What was measured in alternating rounds without and with the attack."""

    quiet_p99s_ns: list[float]
    hostile_p99s_ns: list[float]
    rates: list[float]
    """Hostile packets per second in each round."""
    resident_bytes: list[int]
    """The driver's resident memory after each round."""


def alternate(
    stream: LatencyStream, folder: Path, port: int, seed: int, resident: Callable[[], int]
) -> Rounds:
    """Measure the latency of a stream in alternating rounds without and with the attack. `resident`
    returns the driver's resident memory.
    """
    found = Rounds([], [], [], [])
    with _unread(port + DECOY_OFFSET):
        for number in range(ROUNDS):
            with Flood(folder, port + DECOY_OFFSET, seed + number):
                found.quiet_p99s_ns.append(percentile(stream.run(ROUND_S), 0.99))
            with Flood(folder, port, seed + number) as flood:
                found.hostile_p99s_ns.append(percentile(stream.run(ROUND_S), 0.99))
                found.rates.append(flood.rate())
            found.resident_bytes.append(resident())
    return found


@contextmanager
def _unread(port: int) -> Iterator[None]:
    """Bind the ports to which an attack would send, and read nothing."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control,
    ):
        data.bind((LOOPBACK, port))
        control.bind((LOOPBACK, port + CONTROL_OFFSET))
        yield


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
            wait(began_s, lambda: subscription.images)
        slowest_s = max(slowest_s, time.monotonic() - began_s)
    publication.close()
    return slowest_s


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
