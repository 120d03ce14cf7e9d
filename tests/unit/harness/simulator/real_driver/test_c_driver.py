"""One real C driver, in a separate process, since its library is changed when it is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.harness.simulator.real_driver.c_driver import _environment
from windtunnel.harness.simulator.world.virtual_time import EPOCH_NS

pytest.importorskip("pyaeron")
REPOSITORY = Path(__file__).parents[5]
CHILD = """
import sys
from pathlib import Path
import numpy as np
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.media.link import make_links
from windtunnel.harness.simulator.real_driver import c_driver, simulated_machine

now, zero = np.full(1, 5_000_000_000), np.zeros(1, dtype=np.int64)
machine = simulated_machine.SimulatedMachine(now, zero, zero, ("10.0.0.1",), (1,))
machine.sockets.set_links(0, make_links(4, 1 << 12))
simulated_machine.calls.append(machine)
folder = Path(sys.argv[1])
"""


def child(folder, program, **variables):
    """Run a program with a real driver in a separate process. Returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD + program, str(folder)],
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_driver_writes_the_virtual_time_as_its_heartbeat_and_closes(tmp_path):
    found = child(
        tmp_path / "driver",
        """
from windtunnel.driver.cnc.cnc_file import open_existing
driver = c_driver.CDriver(folder, {})
assert driver.address and c_driver.turn_address()
driver.do_work()
cnc = open_existing(folder, writable=False)
for _ in range(2):
    print(cnc.heartbeat_ms())
    now[0] += 2_000_000_000
    driver.do_work()
driver.close()
""",
    )
    first, second = map(int, found)
    assert first == EPOCH_NS // 1_000_000 + 5_000
    assert second == first + 2_000


def test_a_driver_that_rejects_its_settings_names_the_reason(tmp_path):
    (text,) = child(
        tmp_path / "driver",
        """
try:
    c_driver.CDriver(folder, {"AERON_TERM_BUFFER_LENGTH": "65k"})
except DriverError as error:
    print(" ".join(str(error).split()))
""",
    )
    assert text.startswith("aeron_driver_init failed: ")
    assert len(text) > len("aeron_driver_init failed: ")


def test_a_driver_reads_only_the_variables_that_it_is_given(monkeypatch):
    monkeypatch.setenv("AERON_DIR", "before")
    monkeypatch.setenv("OTHER", "kept")
    with _environment({"AERON_MTU_LENGTH": "1408"}):
        assert {name for name in os.environ if name.startswith("AERON_")} == {"AERON_MTU_LENGTH"}
        assert os.environ["OTHER"] == "kept"
    assert os.environ["AERON_DIR"] == "before"
    assert "AERON_MTU_LENGTH" not in os.environ
