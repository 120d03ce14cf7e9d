"""A stall is not excused by an overloaded host; any other reason for it is."""

import pytest

from tests.unit.harness.verdict.synthetic_run import COUNTERS, START_NS, make_run
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.run.manifest import Phase
from windtunnel.harness.scenario.resolved.fault_case import WhenCase
from windtunnel.harness.scenario.schema.pace import PaceCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.views.stalls.stall_detector import STALL_NS_MIN, stall_ns

SECOND_NS = 1_000_000_000
QUARTER_NS = SECOND_NS // 4
LASTED_NS = 40 * SECOND_NS
MOVED_NS = 10 * SECOND_NS
"""Time after the start at which a position moves last."""
STILL_NS = LASTED_NS - MOVED_NS
WAIT, THROTTLED, GAP, STOLEN = 2, 3, 4, 5


@pytest.fixture
def run(tmp_path):
    """Return 40 s of traffic without progress and without overload in the last 30 s."""
    run = make_run(tmp_path)
    run.manifest.complete = False
    run.manifest.overran = "the budget of 40 s is over"
    run.manifest.phases = [Phase("traffic", START_NS, START_NS + LASTED_NS)]
    for host in ("a", "b"):
        run.pressure[host] = [
            [time_ns, time_ns // 10, time_ns // 100, 0, 6_000_000, 0]
            for time_ns in range(START_NS, START_NS + LASTED_NS + SECOND_NS, QUARTER_NS)
        ]
    move(run, MOVED_NS)
    return run


def move(run, after_ns):
    run.samples["b"].append((START_NS + after_ns, "rcv-pos", run.values["rcv-pos"]))


def stall_of(run):
    return stall_ns(Evidence(run.write()))


def row_at(after_ns):
    return after_ns // QUARTER_NS


def test_a_stall_is_counted_from_the_last_move(run):
    assert stall_of(run) == STILL_NS


@pytest.mark.parametrize(("beyond_ns", "is_reported"), [(0, False), (QUARTER_NS, True)])
def test_a_stall_shorter_than_timeouts_is_not_reported(run, beyond_ns, is_reported):
    move(run, LASTED_NS - STALL_NS_MIN - beyond_ns)
    assert stall_of(run) == (STALL_NS_MIN + beyond_ns if is_reported else 0)


@pytest.mark.parametrize("host", ["a", "b"])
@pytest.mark.parametrize(
    ("column", "amount"),
    [(WAIT, 100_000_000), (THROTTLED, 5_000_000), (STOLEN, 100_000_000)],
)
def test_a_stall_begins_after_the_last_overload_of_a_host(run, host, column, amount):
    for row in run.pressure[host][row_at(20 * SECOND_NS) :]:
        row[column] += amount
    assert stall_of(run) == 20 * SECOND_NS
    for row in run.pressure[host][row_at(30 * SECOND_NS) :]:
        row[column] += amount
    assert stall_of(run) == 0


@pytest.mark.parametrize(
    ("column", "amount"), [(WAIT, 80_000_000), (THROTTLED, 2_000_000), (STOLEN, 80_000_000)]
)
def test_overload_that_timing_checks_tolerate_does_not_end_a_stall(run, column, amount):
    for row in run.pressure["b"][row_at(30 * SECOND_NS) :]:
        row[column] += amount
    assert stall_of(run) == STILL_NS


@pytest.mark.parametrize(("gap_ns", "still_ns"), [(50_000_000, STILL_NS), (50_000_001, 0)])
def test_a_sampler_that_was_not_scheduled_ends_the_stall(run, gap_ns, still_ns):
    run.pressure["a"][row_at(30 * SECOND_NS)][GAP] = gap_ns
    assert stall_of(run) == still_ns


@pytest.mark.parametrize(
    ("type_id", "undisturbed_s"),
    [(1, 30), (9, 30), (99, 30), (2, 20), (3, 20), (4, 20), (5, 20), (12, 20), (100, 20)],
)
def test_only_positions_and_an_archives_counters_show_progress(
    run, monkeypatch, type_id, undisturbed_s
):
    monkeypatch.setitem(COUNTERS["b"], "another", (90, type_id))
    run.samples["b"].append((START_NS + 20 * SECOND_NS, "another", 5))
    assert stall_of(run) == undisturbed_s * SECOND_NS


def test_missing_samples_are_inconclusive(run):
    for row in run.pressure["a"]:
        row[STOLEN] = row[THROTTLED] = -1
    assert stall_of(run) == STILL_NS
    watched = run.pressure["b"]
    run.pressure["b"] = watched[: row_at(30 * SECOND_NS)]
    assert stall_of(run) == 0
    run.pressure["b"] = watched
    run.samples["a"] = []
    assert stall_of(run) == 0


@pytest.mark.parametrize(("over_s", "undisturbed_s"), [(8, 30), (20, 20), (30, 0), (None, 0)])
def test_a_stall_begins_when_all_events_are_over(run, over_s, undisturbed_s):
    path = run.write()
    ended_ns = 0 if over_s is None else START_NS + over_s * SECOND_NS
    event = AppliedEvent("one", "b", "pause", ["driver"], START_NS + SECOND_NS, ended_ns)
    case = run.case.model_copy(update={"events": ("one",)})
    evidence = Evidence(path)
    evidence.case = case
    write_applied_events(evidence.folder.host_events, [event])
    assert stall_ns(evidence) == undisturbed_s * SECOND_NS


def with_faults(case, **facts):
    return {"faults": tuple(each.model_copy(update=facts) for each in case.faults)}


def with_traffic(case, **facts):
    return {"traffic": tuple(each.model_copy(update=facts) for each in case.traffic)}


def with_timeouts(case, **facts):
    return {"timeouts": case.timeouts.model_copy(update=facts)}


@pytest.mark.parametrize(
    "asking",
    [
        lambda case, ns: with_faults(case, hold_ns=ns),
        lambda case, ns: with_faults(case, when=WhenCase(for_ns=ns)),
        lambda case, ns: with_traffic(case, close_after_ns=ns),
        lambda case, ns: with_traffic(case, pace=PaceCase(rest_every_bytes=1 << 20, rest_ns=ns)),
        lambda case, ns: with_traffic(case, consume=PaceCase(rest_every_bytes=1 << 20, rest_ns=ns)),
        lambda case, ns: with_timeouts(case, image_liveness_ns=ns),
        lambda case, ns: with_timeouts(case, client_liveness_ns=ns),
        lambda case, ns: with_timeouts(case, driver_ns=ns),
    ],
    ids=["hold", "when", "close", "publisher", "subscriber", "image", "client", "driver"],
)
def test_pauses_that_the_scenario_requests_are_tolerated(run, asking):
    whole = run.case
    run.case = whole.model_copy(update=asking(whole, STILL_NS - STALL_NS_MIN - 1))
    assert stall_of(run) == STILL_NS
    run.case = whole.model_copy(update=asking(whole, STILL_NS - STALL_NS_MIN))
    assert stall_of(run) == 0


def test_a_rate_so_low_that_one_message_takes_as_long_is_requested_too(run):
    slow = PaceCase(bytes_per_s=1)
    run.case = run.case.model_copy(update=with_traffic(run.case, consume=slow))
    assert stall_of(run) == 0


@pytest.mark.parametrize(("pressed_s", "outcome"), [(5, Outcome.FAIL), (30, Outcome.INCONCLUSIVE)])
def test_only_an_overload_that_could_have_caused_the_stall_excuses_the_run(run, pressed_s, outcome):
    """It would otherwise excuse any later stall, however long."""
    run.messages = run.messages[:50]
    for row in run.pressure["b"][row_at(pressed_s * SECOND_NS) :]:
        row[WAIT] += 100_000_000
    verdict = judge(run.write())
    assert verdict.outcome is outcome, verdict.reason
    if outcome is Outcome.FAIL:
        assert "no position moved for 30.0 s although no host was overloaded" in verdict.reason
    else:
        assert "gate host_was_not_overloaded failed" in verdict.reason


def test_a_host_that_starved_excuses_it(run):
    run.messages = run.messages[:50]
    run.pressure["b"][row_at(5 * SECOND_NS)][GAP] = SECOND_NS + 1
    assert judge(run.write()).outcome is Outcome.INCONCLUSIVE
