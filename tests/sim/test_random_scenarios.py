"""Random scenarios of any kind on virtual time: no sound driver fails one."""

import pytest

from tests.sim.random_scenarios import write, wrong
from tests.sim.simulated import run
from windtunnel.harness.orchestrate.subjects.peers import pair

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
KEEP, SEEDS, REAL_SEEDS = 8, 80, 40


def check(seed, folder, **options):
    path = write(seed, folder)
    if path is not None:
        assert not wrong(run(path, folder, **options))


@pytest.mark.full(keep=KEEP)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_sound_driver_passes(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.peer
@pytest.mark.full(keep=KEEP // 2)
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + REAL_SEEDS))
def test_the_c_driver_passes(seed, tmp_path):
    pytest.importorskip("pyaeron")
    check(seed, tmp_path, tested=pair("pyaeron", "pyaeron", "sim", tmp_path / "store"))
