"""Samples the counters of a simulated host every millisecond of simulated time, holds its log
buffers, and copies its loss report.

All fidelity levels use the same sampler and log holder. Simulated time does not advance while a
driver works, so a host is never under pressure. The pressure file records this.
"""

from __future__ import annotations

import numpy as np

from windtunnel.harness.artifact.host.counter_sample import write_counters
from windtunnel.harness.artifact.host.host_facts import write_error_log
from windtunnel.harness.artifact.host.pressure import UNKNOWN, Pressure
from windtunnel.harness.artifact.run_dir import HostDir
from windtunnel.harness.capture.log_holder import LogHolder
from windtunnel.harness.capture.loss_report_copy import LossReportCopy
from windtunnel.harness.capture.sampler import Sampler
from windtunnel.harness.dissect.driver_files.cnc_file import map_cnc
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.virtual_time import NS_PER_MS

INTERVAL_NS = NS_PER_MS
LOGS_INTERVAL_NS = 5 * NS_PER_MS
"""The interval at which new log buffers are searched for, as in the other fidelity levels."""
CNC_FILE = "cnc.dat"


class CounterSamples:
    """Samples one host's counters every millisecond of simulated time."""

    def __init__(self, host: Host, files: HostDir) -> None:
        cnc = map_cnc(host.directory / CNC_FILE)
        assert cnc is not None, f"{host.name} has no finished cnc file"
        files.path.mkdir(parents=True, exist_ok=True)
        self._files, self._cnc, self._sampler = files, cnc, Sampler(cnc)
        self._output = files.counter_samples.open("wb")
        self._logs = LogHolder(host.directory)
        self._losses = LossReportCopy(host.directory)
        self._times_ns: list[int] = []
        self._next_ns = self._next_logs_ns = 0

    def look(self, now_ns: int) -> int:
        """Take a sample if one is due. Returns the time of the next one."""
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + INTERVAL_NS
            self._times_ns.append(now_ns)
            if now_ns >= self._next_logs_ns:
                self._next_logs_ns = now_ns + LOGS_INTERVAL_NS
                self._logs.poll()
            self._output.write(self._sampler.sample(now_ns).tobytes())
        return self._next_ns

    def close(self, now_ns: int) -> None:
        """Take the last sample and write counters, errors, losses and logs.

        This may be called after the driver has ended, since the files stay mapped and open.
        """
        self._output.write(self._sampler.sample(now_ns).tobytes())
        self._output.close()
        write_counters(self._files.counters, self._sampler.counters())
        write_error_log(self._files.cnc_errors, self._cnc.errors())
        self._losses.write(self._files.loss_report)
        self._logs.copy(self._files)
        rows = [(each, each, 0, UNKNOWN, INTERVAL_NS, 0) for each in (*self._times_ns, now_ns)]
        Pressure(INTERVAL_NS, np.array(rows, dtype=np.int64)).write(self._files.pressure)
