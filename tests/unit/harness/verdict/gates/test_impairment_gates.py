"""The gate on impairments: passes if they are as specified, fails on the smallest deviation."""

import random

import pytest

from tests.unit.harness.verdict.judged import gated
from tests.unit.harness.verdict.synthetic_run import A_TO_B, make_run
from windtunnel.harness.artifact.middlebox.impairment_account import ImpairmentAccount
from windtunnel.harness.artifact.middlebox.netem import NetemAccount, NetemLink
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase, LossCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, LinkChanges, LinkCounts
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.gates.impairment_gates import (
    impairments_applied,
    loss_interval,
    min_loss_trials,
)
from windtunnel.harness.verdict.gates.ledger_gates import ledger_balanced

INCONCLUSIVE, HARNESS, PASS = Outcome.INCONCLUSIVE, Outcome.HARNESS, Outcome.PASS
LOSS = LossCase(model="iid", shares_ppb=(100_000_000,))
BURSTS = LossCase(model="gilbert-elliott", shares_ppb=(10**7, 2 * 10**8, 10**9, 0))
OPTIONS = {"limit": 10_000, "loss-random": {"loss": 0.1, "correlation": 0}, "ecn": False, "gap": 0}


@pytest.fixture
def run(tmp_path):
    """Return a run without loss, whose case specifies 10 % loss."""
    made = make_run(tmp_path, drops=False)
    impairments = (ImpairmentCase(link="a->b", loss=LOSS),)
    made.case = made.case.model_copy(update={"impairments": impairments, "faults": ()})
    return made


def by_relay(run, **account):
    sent = run.links[A_TO_B].datagrams_out
    run.links[A_TO_B].impairments = ImpairmentAccount(received=sent, sent=sent, **account)
    return run


def by_netem(run, dropped, packets=None):
    run.case = run.case.model_copy(update={"backend": "netem"})
    sent = run.links[A_TO_B].datagrams_out
    left = sent if packets is None else packets
    link = NetemLink("to-b", ["limit"], OPTIONS, packets=left, dropped=dropped)
    NetemAccount({A_TO_B: link}).write(run.folder.netem)
    return run


def findings_of(run, gate=impairments_applied):
    return gated(gate, Evidence(run.write()))


def lose(run, count):
    """Remove some of b's captured DATA, as netem would."""
    packets = run.packets["b"]
    lost = [packet for packet in packets if packet.kind == "DATA"][:count]
    run.packets["b"] = [packet for packet in packets if packet not in lost]


def test_no_impairment_is_no_condition(tmp_path):
    (found,) = findings_of(make_run(tmp_path))
    assert found.outcome is PASS
    assert "has no impairments" in found.text


def test_a_relay_without_an_impairment_account_is_broken(run):
    (found,) = findings_of(run)
    assert found.outcome is HARNESS


def test_losses_within_the_interval_of_chance_pass(run):
    sent = run.links[A_TO_B].datagrams_out
    low, high = loss_interval(LOSS, sent)
    for lost, outcome in ((low, PASS), (high, PASS), (high + 1, INCONCLUSIVE), (0, INCONCLUSIVE)):
        (found,) = findings_of(by_relay(run, lost=lost))
        assert found.outcome is outcome, found.text
        assert found.facts == {"hits": lost, "eligible": sent}


def test_a_packet_that_is_lost_and_duplicated_counts_as_neither(run):
    """Draws as in netem: a lost packet that is duplicated passes once, and a copy may be lost."""
    rng, count, lost, doubled = random.Random(5), 400_000, 0, 0
    for _ in range(count):
        is_lost, is_double = rng.random() < 0.1, rng.random() < 0.3
        doubled += is_double and not is_lost
        lost += (is_lost and not is_double) or (is_double and not is_lost and rng.random() < 0.1)
    both = ImpairmentCase(link="a->b", loss=LOSS, duplicate_ppb=3 * 10**8)
    run.case = run.case.model_copy(update={"impairments": (both,)})
    run.links[A_TO_B].impairments = ImpairmentAccount(
        received=count, sent=count - lost + doubled, lost=lost, duplicated=doubled
    )
    assert [each.outcome for each in findings_of(run)] == [PASS, PASS]
    # With the asked shares of all packets, both would be improbable.
    assert lost < loss_interval(LOSS, count)[0]
    assert doubled < 0.28 * count


def test_too_few_packets_are_inconclusive_and_excuse_nothing(run):
    rare = LossCase(model="iid", shares_ppb=(10_000,))
    run.case = run.case.model_copy(
        update={"impairments": (ImpairmentCase(link="a->b", loss=rare),)}
    )
    (found,) = findings_of(by_relay(run))
    assert found.outcome is INCONCLUSIVE
    assert "sample too small" in found.text
    assert not found.excuses


def test_few_packets_of_applications_are_no_reason_to_doubt_a_run(run):
    impairments = ImpairmentCase(link="a->b", loss=LossCase(model="iid", shares_ppb=(10**6,)))
    run.case = run.case.model_copy(update={"impairments": (impairments,), "traffic": ()})
    (found,) = findings_of(by_relay(run))
    assert found.outcome is PASS, found.text
    assert "sample too small" not in found.text


def test_netem_must_have_been_set_as_specified(run):
    by_netem(run, 0)
    other = {**OPTIONS, "loss-random": {"loss": 0.2, "correlation": 0}}
    NetemAccount({A_TO_B: NetemLink("to-b", [], other)}).write(run.folder.netem)
    (found,) = findings_of(run)
    assert found.outcome is HARNESS
    assert "expected 0.1, found 0.2" in found.text


def test_netems_account_must_exist(run):
    run.case = run.case.model_copy(update={"backend": "netem"})
    (found,) = findings_of(run)
    assert found.outcome is INCONCLUSIVE


def test_missing_packets_must_have_been_dropped_by_netem(run):
    sent = run.links[A_TO_B].datagrams_out
    lost = sent // 10
    lose(run, lost)
    (found,) = findings_of(by_netem(run, lost, packets=sent - lost))
    assert found.outcome is PASS, found.text
    (found,) = findings_of(by_netem(run, lost - 1, packets=sent - lost))
    assert found.outcome is INCONCLUSIVE
    assert "entered netem" in found.text


def test_packets_still_queued_at_the_end_are_reported(run):
    by_netem(run, 0)
    account = NetemAccount.read(run.folder.netem)
    account.links[A_TO_B].waiting = 3
    account.write(run.folder.netem)
    (found,) = findings_of(run)
    assert "3 packets were still queued" in found.text


def test_the_ledger_balances_with_losses_by_an_impairment(run):
    sent = run.links[A_TO_B].datagrams_out
    lose(run, 5)
    account = ImpairmentAccount(received=sent, lost=5, sent=sent - 5, frames_lost={"DATA": 5})
    run.links[A_TO_B].impairments = account
    assert {found.outcome for found in findings_of(run, ledger_balanced)} == {PASS}
    account.frames_lost = {"DATA": 4, "SETUP": 1}
    outcomes = {found.about: found.outcome for found in findings_of(run, ledger_balanced)}
    assert outcomes[A_TO_B] is INCONCLUSIVE
    account.lost = 4
    found = next(each for each in findings_of(run, ledger_balanced) if each.about == A_TO_B)
    assert found.outcome is HARNESS


def test_losses_by_netem_are_not_in_the_ledger(run):
    sent = run.links[A_TO_B].datagrams_out
    lose(run, 5)
    by_netem(run, 5, packets=sent - 5)
    assert {found.outcome for found in findings_of(run, ledger_balanced)} == {PASS}


def test_bursts_permit_more_losses_than_independent_losses():
    alone = LossCase(model="iid", shares_ppb=(round(BURSTS.rate * 10**9),))
    (low, high), (least, most) = loss_interval(alone, 10_000), loss_interval(BURSTS, 10_000)
    assert least < low < high < most
    assert min_loss_trials(BURSTS) > min_loss_trials(alone)


def reorders(run, gap, sent, reordered, others=0, **account):
    impairments = ImpairmentCase(link="a->b", delay_ns=10**6, reorder_ppb=10**8, reorder_gap=gap)
    run.case = run.case.model_copy(update={"impairments": (impairments,)})
    link = run.links[A_TO_B]
    link.impairments = ImpairmentAccount(received=sent, sent=sent, reordered=reordered, **account)
    link.datagrams_out, link.other_in = sent, others
    (found,) = findings_of(run)
    return found.outcome


@pytest.mark.parametrize("gap", [1, 4])
def test_reordering_by_the_relay_is_limited_by_its_share(run, gap):
    """With a gap, the packets after a reordered one are not candidates."""
    sent = 3000
    expected = round(sent / (gap - 1 + 10))
    for reordered, outcome in (
        (expected, PASS), (0, INCONCLUSIVE), (expected // 2, INCONCLUSIVE),
        (2 * expected, INCONCLUSIVE), (sent, INCONCLUSIVE),
    ):  # fmt: skip
        assert reorders(run, gap, sent, reordered) is outcome, reordered


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("gap", [1, 3, 20])
def test_valid_reordering_never_fails(run, gap):
    chance = random.Random(gap)
    for _ in range(60):
        sent, since, reordered = chance.randrange(1, 900), 0, 0
        for _ in range(sent):
            if since >= gap - 1 and chance.random() < 0.1:
                since, reordered = 0, reordered + 1
            else:
                since += 1
        assert reorders(run, gap, sent, reordered) is PASS, (sent, reordered)


def test_packets_of_others_may_have_been_reordered_too(run):
    assert reorders(run, 1, 10, 10) is INCONCLUSIVE
    assert reorders(run, 1, 10, 10, others=100) is PASS
    assert reorders(run, 1, 10, 10, no_room=100) is PASS


def test_nothing_is_counted_for_a_delay_alone(run):
    impairments = ImpairmentCase(link="a->b", delay_ns=10**6)
    run.case = run.case.model_copy(update={"impairments": (impairments,)})
    (found,) = findings_of(by_relay(run))
    assert (found.outcome, "effects of these impairments are not" in found.text) == (PASS, True)


def live(run, *changes, **account):
    """Make the run a live one, whose link a->b had no impairments before its changes."""
    both = tuple(ImpairmentCase(link=name) for name in ("a->b", "b->a"))
    run.case = run.case.model_copy(update={"live": True, "impairments": both})
    by_relay(run, **account)
    back = run.links["b->a"]
    back.impairments = ImpairmentAccount(received=back.datagrams_out, sent=back.datagrams_out)
    LinkChanges(changes=changes).write(run.folder.link_changes)
    return run


def changed(at_ns, loss, **counts):
    impairments = ImpairmentCase(link="a->b", loss=loss)
    return LinkChange(number=1, at_ns=at_ns, impairments=impairments, counts=LinkCounts(**counts))


ALL = LossCase(model="iid", shares_ppb=(10**9,))


def test_each_period_of_a_live_run_is_compared_with_its_own_impairments(run):
    """5 datagrams pass, 10 are lost in a partition, the others pass."""
    down, up = changed(1, ALL, received=5, sent=5), changed(2, None, received=15, lost=10, sent=5)
    live(run, down, up, lost=10)
    (found,) = findings_of(run)
    assert found.outcome is PASS, found.text
    assert "iid loss 100.0000% for 10 datagrams: 10 affected, expected 10 to 10" in found.text


def test_a_partition_that_lets_a_datagram_pass_is_reported(run):
    down, up = changed(1, ALL, received=5, sent=5), changed(2, None, received=15, lost=9, sent=6)
    (found,) = findings_of(live(run, down, up, lost=9))
    assert found.outcome is INCONCLUSIVE
    assert "9 affected, expected 10 to 10" in found.text


def test_decreasing_counts_are_invalid(run):
    down, up = changed(1, ALL, received=5, sent=5), changed(2, None, received=4, sent=4)
    found = findings_of(live(run, down, up))
    assert [each.outcome for each in found] == [HARNESS]


def test_a_short_period_of_a_live_run_is_no_reason_to_doubt_it(run):
    (found,) = findings_of(
        live(run, changed(1, LOSS, received=run.links[A_TO_B].datagrams_out - 3))
    )
    assert found.outcome is PASS, found.text


def test_a_live_run_without_impairments_passes_and_needs_its_file(run):
    (found,) = findings_of(live(run))
    assert found.outcome is PASS
    run.folder.link_changes.unlink()
    (found,) = findings_of(run)
    assert found.outcome is INCONCLUSIVE
    assert "link-changes.json: is missing" in found.text
