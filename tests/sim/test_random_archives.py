"""Random scenarios with archives on virtual time: recordings are exact, whatever happens."""

import pytest

from tests.sim.random_archives import scenario
from tests.sim.simulated import run
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.subjects.peers import pair
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
KEEP, SEEDS, REAL_SEEDS = 3, 40, 20


def check(seed, folder, **options):
    """Run the scenario of a seed, whose checks must pass.

    The run may be INCONCLUSIVE, because a rule had too few frames to estimate its share.
    """
    file = folder / f"archive-{seed}.yaml"
    file.write_text(scenario(seed))
    result = run(file, folder, **options)
    assert result.outcome in ("PASS", "INCONCLUSIVE"), result.reason
    (found,) = folder.glob("runs/*/*/case.json")
    verdict = judge(RunDir(found.parent).path)
    wrong = [each for each in verdict.checks if each.outcome is not Outcome.PASS]
    assert not wrong, [(each.name, each.about, each.outcome, each.text) for each in wrong]


@pytest.mark.full(keep=KEEP)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_recordings_are_exact(seed, tmp_path):
    check(seed, tmp_path)


@pytest.mark.peer
@pytest.mark.full
@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + REAL_SEEDS))
def test_recordings_beside_the_c_driver_are_exact(seed, tmp_path):
    pytest.importorskip("pyaeron")
    check(seed, tmp_path, tested=pair("pyaeron", "pyaeron", "sim", tmp_path / "store"))
