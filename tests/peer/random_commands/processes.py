"""A driver in a network namespace of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.peer.random_commands.drivers import DriverUnderTest
from tests.peer.random_commands.names import ID_MIN, Names
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.cnc import cnc_file

ROOT = Path(__file__).resolve().parents[3]
START_TIMEOUT_S = 300
"""With an empty kernel cache, our driver compiles its kernels first."""
COMMANDS = {
    "real": ("windtunnel.harness.bench.c_driver",),
    "ours": ("windtunnel.driver",),
}
SETTINGS = {
    "AERON_THREADING_MODE": "SHARED", "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_TERM_BUFFER_LENGTH": "64k", "AERON_IPC_TERM_BUFFER_LENGTH": "64k",
    "AERON_TIMER_INTERVAL": "100ms", "AERON_CLIENT_LIVENESS_TIMEOUT": "120s",
    "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "240s",
    "AERON_PUBLICATION_CONNECTION_TIMEOUT": "1s", "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "100ms", "AERON_RCV_STATUS_MESSAGE_TIMEOUT": "100ms",
}  # fmt: skip


class DriverProcess(DriverUnderTest):
    """A driver that runs in a process."""

    def __init__(self, kind: str, folder: Path, settings: dict[str, str]) -> None:
        super().__init__(kind, folder / kind, Names(), ID_MIN)
        network = (sys.executable, "-m", "tests.peer.random_commands.own_network")
        self.process = subprocess.Popen(
            [*network, sys.executable, "-m", *COMMANDS[kind]], cwd=ROOT, stdout=subprocess.DEVNULL,
            env=os.environ | SETTINGS | settings | {"AERON_DIR": str(self.directory)},
        )  # fmt: skip

    def connect(self) -> None:
        """Wait until the driver is ready, and use its CnC file."""
        end_s = time.monotonic() + START_TIMEOUT_S
        while True:
            assert self.process.poll() is None, f"{self.kind}: the driver ended at once"
            try:
                cnc = cnc_file.attach(self.directory, SystemClock().now_ms(), 10_000)
                break
            except (cnc_file.DriverNotReadyError, cnc_file.DriverTimeoutError):
                assert time.monotonic() < end_s, f"{self.kind}: the driver did not start"
                time.sleep(0.01)
        self.attach(cnc)

    def close(self) -> int:
        """Stop the driver. Returns its exit code."""
        self.unmap()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)
