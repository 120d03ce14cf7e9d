"""The swarm with the unmodified real C driver: trials pass, are repeatable, and are audited."""

import pytest

from tests.sim.swarm_process import swarm
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.simulator.swarm.trial_figures import EQUAL, TIMING, compare, kind_of
from windtunnel.harness.simulator.swarm.trial_sabotage import SABOTAGES

pytest.importorskip("pyaeron")
# A machine's first run compiles every kernel of the simulator.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


def trials_of(folder, *arguments):
    """Run the swarm. Returns its exit code, its trials, and its errors."""
    code, lines, errors = swarm(folder, *arguments)
    return code, [each for each in lines if each["kind"] == "trial"], errors


@pytest.mark.full
@pytest.mark.parametrize("drivers", ["mixed", "pyaeron"])
@pytest.mark.parametrize("seeds", [2, 300])
def test_seeds_cause_no_violation(tmp_path, drivers, seeds):
    code, trials, errors = trials_of(tmp_path, "--driver", drivers, "--seeds", str(seeds))
    assert [each for each in trials if each["violation"] or each["defect"]] == []
    assert (code, len(trials)) == (0, seeds), errors


def test_equal_seeds_have_equal_digests_in_different_processes(tmp_path):
    arguments = ["--driver", "pyaeron", "--seed", "100", "--seeds", "3", "--frames", "100"]
    one, other = (trials_of(tmp_path, *arguments)[1] for _ in range(2))
    digests = [each["digest"] for each in one]
    assert digests == [each["digest"] for each in other]
    assert len(set(digests)) == len(digests)


@pytest.mark.full
@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_sabotage_of_real_drivers_is_found(tmp_path, sabotage):
    # The trial of seed 75 has a rule that drops DATA, and without a recovery phase it drops all.
    seed = "75" if sabotage == "never-heal" else "1"
    code, trials, _ = trials_of(
        tmp_path, "--driver", "pyaeron", "--seed", seed, "--sabotage", sabotage
    )
    assert code == 1
    assert trials[0]["violation"]


@pytest.mark.full
def test_a_library_that_is_not_the_drivers_is_unsupported(tmp_path):
    file = tmp_path / "other.so"
    file.write_bytes(b"no library")
    code, trials, errors = trials_of(tmp_path, "--driver", f"aeronmd-lib:{file}")
    assert (code, trials) == (127, [])
    assert "other.so: expected a 64-bit little-endian ELF file" in errors


@pytest.mark.full
def test_a_comparison_has_the_figures_of_both_drivers(tmp_path):
    kept = tmp_path / "kept"
    arguments = ["--driver", "pyaeron", "--seed", "5", "--frames", "100", "--compare"]
    code, trials, errors = trials_of(tmp_path, *arguments, "--keep", str(kept))
    assert (code, len(trials)) == (0, 1), errors
    real, ours = (Case.read(folder / "case.json") for folder in (kept, tmp_path / "kept-ours"))
    assert real == ours
    for figures in (trials[0]["figures"], trials[0]["ours"]):
        assert figures["DATA"] > 0
        assert figures["SM"] > 0
    assert trials[0]["figures"]["position"] == trials[0]["ours"]["position"]


@pytest.mark.full
def test_drivers_that_read_equally_many_datagrams_fill_equally_many_gaps(tmp_path):
    # With 64 datagrams per duty cycle, our driver fills 6 gaps in this trial, the C driver 5.
    code, trials, errors = trials_of(tmp_path, "--driver", "pyaeron", "--seed", "1468", "--compare")
    assert (code, len(trials)) == (0, 1), errors
    assert kind_of(compare(trials[0]["ours"], trials[0]["figures"])) in (EQUAL, TIMING)
