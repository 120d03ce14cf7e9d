"""Measures one benchmark case with a running driver. A failed measurement is marked as invalid
(void).

    connect | first second dropped | sample 1 ......... sample 2 | drain, compare | end
                                     count, time, processor time

Results are differences between the two samples. A reading is void if a message was lost, out of
order or duplicated, if a process died, or if kernels were compiled during the measurement.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from windtunnel.driver.kernels.sources import cache_root
from windtunnel.harness.artifact.run.bench_board import latencies_file
from windtunnel.harness.bench.host import DriverHost
from windtunnel.harness.bench.loads import Loads, MeasurementError
from windtunnel.harness.bench.plan import CALLS, PORTS, BenchCase, BenchSettings, channels
from windtunnel.harness.bench.ports import free_ports
from windtunnel.harness.bench.subject import plain_environment

PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99", "max")
"""The values of round trips that are compared."""
CURVE = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
"""The percentiles that are measured."""
COMPILED = "kernels were JIT-compiled on this machine during the measurement"
NO_ROUND_TRIPS = "no round trip completed during the measurement"
LOAD_LIMIT_S = 240.0
"""Seconds after the measurement at which a load generator exits, even if it was not stopped."""


@dataclass(frozen=True)
class Reading:
    """The result of one measurement: the measured values, or the reason why it is void."""

    driver: str
    case: str
    round_index: int
    values: dict[str, float] = field(default_factory=dict)
    """Measured values by name. Empty for a void reading."""
    void: str = ""
    """The reason why the reading is invalid (void), or an empty string."""


@dataclass(frozen=True)
class Sample:
    """The clocks and counters of a measurement, read at one moment."""

    now_ns: int
    wall_ns: int
    count: int
    processor_ns: int
    busy_ns: int = 0
    """Time in which the load generator called the client, for cases that measure calls."""
    busy_processor_ns: int = 0
    """Processor time of these calls."""


def call_values(first: Sample, second: Sample) -> dict[str, float]:
    """Return the messages per second of a client's calls, and the client's processor time per
    message in nanoseconds.

    Raises MeasurementError if no burst ended between the samples.
    """
    messages, busy_ns = second.count - first.count, second.busy_ns - first.busy_ns
    if messages <= 0 or busy_ns <= 0:
        raise MeasurementError("no burst of messages ended during the measurement")
    processor_ns = second.busy_processor_ns - first.busy_processor_ns
    return {"messages": messages * 1e9 / busy_ns, "processor": processor_ns / messages}


def stream_values(first: Sample, second: Sample, message_length: int) -> dict[str, float]:
    """Return messages/s, megabytes/s and the driver's processor time per message in nanoseconds.

    Raises MeasurementError if nothing arrived between the samples.
    """
    messages = second.count - first.count
    if messages <= 0:
        raise MeasurementError("no message arrived during the measurement")
    rate = messages * 1e9 / (second.now_ns - first.now_ns)
    return {
        "messages": rate,
        "megabytes": rate * message_length / 1e6,
        "processor": (second.processor_ns - first.processor_ns) / messages,
    }


def echo_values(latencies_ns: np.ndarray) -> dict[str, float]:
    """Return latency percentiles in microseconds. Raises MeasurementError if there are no round
    trips.
    """
    if latencies_ns.size == 0:
        raise MeasurementError(NO_ROUND_TRIPS)
    found = np.percentile(latencies_ns, [*CURVE, 100.0], method="higher") / 1e3
    names = [*(f"p{percent:g}" for percent in CURVE), "max"]
    return dict(zip(names, found.tolist(), strict=True))


def compiled_between(root: Path, first_ns: int, second_ns: int) -> bool:
    """Return whether a kernel was compiled and cached between two wall-clock times, which makes a
    measurement invalid.
    """
    written = (path.stat().st_mtime_ns for path in root.glob("*/**/*.image"))
    return any(first_ns <= at_ns <= second_ns for at_ns in written)


def measure(
    case: BenchCase, host: DriverHost, settings: BenchSettings, folder: Path, round_index: int
) -> Reading:
    """Measure one benchmark case with a running driver."""
    name = host.subject.name
    try:
        if case.kind == "startup":
            values = {"startup": host.start_up_ns / 1e6, "rss": host.memory().resident / 1e6}
        else:
            values = _under_load(case, host, settings, folder)
        if not host.is_alive:
            raise MeasurementError("the driver exited")
    except MeasurementError as error:
        return Reading(name, case.name, round_index, void=str(error))
    return Reading(name, case.name, round_index, values)


def _under_load(
    case: BenchCase, host: DriverHost, settings: BenchSettings, folder: Path
) -> dict[str, float]:
    with Loads(
        case,
        folder,
        aeron_dir=host.directory,
        channels=channels(case, settings, free_ports(PORTS)),
        idle=settings.client_idle,
        limit_s=settings.warm_up_s + settings.seconds + LOAD_LIMIT_S,
        environment=plain_environment(),
        more=("--client", host.subject.client if case.kind in CALLS else settings.client),
    ) as loads:
        loads.wait_until_flowing()
        loads.sleep(settings.warm_up_s)
        first = _sample(loads, host)
        loads.sleep(settings.seconds)
        second = _sample(loads, host)
        resident = host.memory().resident / 1e6
        loads.finish()
    if compiled_between(cache_root(), first.wall_ns, second.wall_ns):
        raise MeasurementError(COMPILED)
    if case.kind in CALLS:
        return call_values(first, second)
    if case.kind == "stream":
        values = stream_values(first, second, case.message_length)
    else:
        latencies = np.memmap(latencies_file(loads.board.path), dtype=np.int64, mode="r")
        values = echo_values(np.asarray(latencies[first.count : second.count]))
    return values | {"rss": resident}


def _sample(loads: Loads, host: DriverHost) -> Sample:
    now_ns, wall_ns, count = time.monotonic_ns(), time.time_ns(), loads.count
    return Sample(now_ns, wall_ns, count, host.processor_ns(), *loads.board.busy_ns)
