"""The sampler process: reads a driver's counters from shared memory during a run.

    python -m windtunnel.harness.capture.counters --aeron-dir D --out DIR --interval 5ms

    ready                      printed once the driver's cnc file is complete and has a heartbeat
    DIR/counters.bin           samples, written during the run
    DIR/counters.json          the descriptions of the counters, at the end
    DIR/cnc-errors.json        the driver's distinct error log, at the end
    DIR/loss-report.dat        the used part of the driver's loss report, at the end
    DIR/pressure.json          how long the driver waited for a processor, over time
    DIR/logs.json, DIR/logs/   copies of the driver's log buffers, at the end

The sampler ends on SIGTERM, after a final sample. It waits for a driver that has not started, and
continues to sample a driver that has died, because the file stays mapped. Without a driver it
writes no documents. A cnc.dat that is invalid, or is truncated later, ends it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from windtunnel.harness.artifact.host.counter_sample import write_counters
from windtunnel.harness.artifact.host.host_facts import write_error_log
from windtunnel.harness.artifact.regular_file import UnsafeFileError
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.capture.live_cnc import CNC_FILE, LiveCnc, map_live
from windtunnel.harness.capture.log_holder import LogHolder
from windtunnel.harness.capture.loss_report_copy import LossReportCopy
from windtunnel.harness.capture.pressure_gauge import PressureGauge
from windtunnel.harness.capture.sampler import Sampler
from windtunnel.harness.capture.shutdown_signal import ShutdownSignal
from windtunnel.harness.dissect.driver_files.cnc_file import CncFileError
from windtunnel.harness.scenario.schema.units import parse_duration

READY_LINE = "ready"
FLUSH_S = 0.25
EXIT_INVALID_FILE = 4
"""As in `verdict.core.exit_codes`."""


def wait_for_driver(
    directory: Path, stop: ShutdownSignal, interval_s: float, after_ms: int = 0
) -> LiveCnc | None:
    """Wait for a driver's heartbeat. Returns the driver's cnc file, or None if the sampler is
    stopped before the heartbeat.

    A driver that started before `after_ms`, in milliseconds since 1970, is ignored.
    """
    while not stop.is_set:
        live = map_live(directory)
        if live is not None:
            cnc = live.cnc
            if cnc.start_timestamp_ms >= after_ms and int(cnc.heartbeat[0]) > 0:
                return live
        time.sleep(interval_s)
    return None


def follow(
    live: LiveCnc,
    logs: LogHolder,
    losses: LossReportCopy,
    files: HostDir,
    stop: ShutdownSignal,
    interval_s: float,
    pid: int,
) -> None:
    """Sample a driver's counters until stopped, take a final sample, and write the sampler's
    documents. `pid` is the driver's process, or 0 if it cannot be seen. Raises CncFileError if the
    driver's cnc.dat is truncated.
    """
    sampler = Sampler(live.cnc)
    gauge = PressureGauge(pid, int(interval_s * 1e9))
    files.path.mkdir(parents=True, exist_ok=True)
    flushed_s = next_s = time.monotonic()
    # Samples at the beginning and at the end ensure two rows for a run of any length.
    gauge.poll(time.time_ns())
    with files.counter_samples.open("wb") as output:
        while not stop.is_set:
            live.require_whole()
            output.write(sampler.sample(time.time_ns()).tobytes())
            gauge.tick()
            now_s = time.monotonic()
            if now_s - flushed_s >= FLUSH_S:
                output.flush()
                logs.poll()
                gauge.poll(time.time_ns())
                flushed_s = now_s
            next_s = max(next_s + interval_s, now_s)
            time.sleep(next_s - now_s)
        live.require_whole()
        output.write(sampler.sample(time.time_ns()).tobytes())
    gauge.poll(time.time_ns())
    write_counters(files.counters, sampler.counters())
    write_error_log(files.cnc_errors, live.cnc.errors())
    losses.write(files.loss_report)
    gauge.pressure().write(files.pressure)
    logs.poll()
    logs.copy(files)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the sampler. Returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="windtunnel.harness.capture.counters", description=__doc__
    )
    parser.add_argument("--aeron-dir", type=Path, required=True)
    parser.add_argument(
        "--out", type=Path, required=True, help="the host's folder in the run folder"
    )
    parser.add_argument(
        "--interval",
        type=parse_duration,
        default="5ms",
        help="time between samples, such as 5ms",
    )
    parser.add_argument(
        "--after",
        type=int,
        default=0,
        help="ignore drivers that started before this time (in ms since 1970)",
    )
    parser.add_argument(
        "--hidden-driver",
        action="store_true",
        help="the driver's process cannot be seen: it is in another container",
    )
    options = parser.parse_args(argv)
    stop = ShutdownSignal.install()
    interval_s = options.interval / 1e9
    print(f"waiting for a driver in {options.aeron_dir}", flush=True)
    try:
        live = wait_for_driver(options.aeron_dir, stop, interval_s, options.after)
        if live is None:
            print(f"stopped before a driver started in {options.aeron_dir}")
            return 0
        print(READY_LINE, flush=True)
        logs, losses = LogHolder(options.aeron_dir), LossReportCopy(options.aeron_dir)
        pid = 0 if options.hidden_driver else live.cnc.pid
        follow(live, logs, losses, HostDir(options.out), stop, interval_s, pid)
    except UnsafeFileError as error:
        print(f"{error.strerror}, in place of {options.aeron_dir / CNC_FILE}")
        return EXIT_INVALID_FILE
    except CncFileError as error:
        print(f"{options.aeron_dir / CNC_FILE}: {error}")
        return EXIT_INVALID_FILE
    return 0


if __name__ == "__main__":
    sys.exit(main())
