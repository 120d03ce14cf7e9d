"""What tests of real runs may accept: a machine that was too slow, and nothing else."""

import pytest

from tests.soundness import assert_sound
from tests.unit.harness.verdict.gates.test_overload import add_early_naks, add_wait
from tests.unit.harness.verdict.synthetic_run import SyntheticRun, make_run
from windtunnel.harness.verdict.core.outcome import Outcome


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    return make_run(tmp_path)


def test_what_passes_is_sound(run):
    run.write()
    assert assert_sound(run.path).outcome is Outcome.PASS


def test_what_an_overloaded_host_excuses_is_sound_and_fails_elsewhere(run):
    add_wait(run)
    add_early_naks(run)
    assert assert_sound(run.path).outcome is Outcome.INCONCLUSIVE
    run.pressure["b"] = run.pressure["a"]
    add_early_naks(run)
    with pytest.raises(AssertionError, match="NAKs for the same"):
        assert_sound(run.path)


@pytest.mark.parametrize("lost", ["pressure.json", "counters.json"])
def test_evidence_that_is_not_there_is_no_slowness(run, lost):
    add_wait(run, "a")
    run.write()
    (run.path / "hosts" / "b" / lost).unlink()
    with pytest.raises(AssertionError, match=lost):
        assert_sound(run.path)
