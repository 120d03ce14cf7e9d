"""Four hosts end to end: a group of three readers, one behind a lossy link, each one judged."""

from pathlib import Path

import pytest

from tests.soundness import assert_sound
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.middlebox.ledger import Ledger
from windtunnel.harness.artifact.suite_dir import SuiteDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]
SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
READERS = ("sub1", "sub2", "sub3")


def first_losses(run):
    """Return (link, position) of DATA that was dropped on its first transmission."""
    decisions = read_decisions(run.decisions)
    chosen = decisions[(decisions["position"] >= 0) & (decisions["attempt"] == 1)]
    return {(int(each["link"]), int(each["position"])) for each in chosen}


@pytest.mark.full
def test_the_losses_of_one_receiver_are_repeatable_and_repaired(tmp_path):
    """Two runs of one seed lose the same frames to one reader, and all readers get all messages."""
    result = run_suite([SCENARIOS / "many" / "multicast-one-lossy.yaml"], seeds=1, out=tmp_path)
    repeated = run_suite([SCENARIOS / "many" / "multicast-one-lossy.yaml"], seeds=1, out=tmp_path)
    losses = []
    for suite in (result, repeated):
        (run,) = SuiteDir(suite.suite_dir).runs()
        verdict = assert_sound(run.path)
        once = [each for each in verdict.checks if each.name == "delivered_once"]
        assert [each.about for each in once] == [f"ticks at {reader}" for reader in READERS]
        losses.append(first_losses(run))
        ledger = Ledger.read(run.ledger)
        sent = {ledger.links[f"pub->{reader}"].datagrams_in for reader in READERS}
        assert len(sent) == 1
        assert ledger.ports["pub"].copies == 2 * sent.pop()
    assert losses[0] == losses[1]
    assert {link for link, _ in losses[0]} == {4}
    assert len(losses[0]) > 10


@pytest.mark.full
def test_a_wrong_byte_is_found_at_every_reader(tmp_path):
    result = run_suite(
        [SCENARIOS / "many" / "multicast-one-lossy.yaml"],
        seeds=1,
        out=tmp_path,
        sabotage="flip-byte",
    )
    (run,) = SuiteDir(result.suite_dir).runs()
    wrong = [each.about for each in judge(run.path).checks if each.outcome is Outcome.FAIL]
    assert {f"ticks at {reader}" for reader in READERS} <= set(wrong)
