"""The counters of open gaps over time."""

import pytest

from tests.unit.harness.verdict import synthetic_run
from tests.unit.harness.verdict.synthetic_run import STEP_NS, SyntheticRun, make_run
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.verdict.checks.counters.gap_counters import gap_counters_agree
from windtunnel.harness.verdict.checks.retransmission.nak_times import SLACK_NS
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome

PASS, FAIL = Outcome.PASS, Outcome.FAIL
OPEN, OLDEST = "rcv-gaps-open", "rcv-oldest-gap"
NAMED = {
    OPEN: (64, 5304), OLDEST: (65, 5305), "rcv-nak-retries": (66, 5306),
    "rcv-repair-time": (67, 5307), "rcv-gaps-filled-early": (68, 5308),
}  # fmt: skip
ALL_GAPS = "|windtunnel.nak-all-gaps=true"
FILL_DELAY_NS = 3 * STEP_NS
FILLS = "|windtunnel.gap-fill-delay=3ms"
OPEN_NS = 2 * STEP_NS
"""Time from the packet that shows a gap to the frame that fills it."""


@pytest.fixture(autouse=True)
def counters(monkeypatch):
    monkeypatch.setitem(synthetic_run.COUNTERS, "b", {**synthetic_run.COUNTERS["b"], **NAMED})


def made(path, receive, **more) -> SyntheticRun:
    run = make_run(path, **more)
    (traffic,) = run.case.traffic
    changed = traffic.model_copy(update={"receive": traffic.receive + receive})
    run.case = run.case.model_copy(update={"traffic": (changed,), "fidelity": "sim"})
    sample(run, run.packets["b"][0].time_ns, 0, 0)
    return run


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    run = made(tmp_path, ALL_GAPS)
    run.values |= {"rcv-nak-retries": 0, "rcv-repair-time": 3 * STEP_NS // 2}
    return run


@pytest.fixture
def filling(tmp_path) -> SyntheticRun:
    run = made(tmp_path, FILLS, reliable=False)
    run.values["rcv-gaps-filled-early"] = 0
    return run


def sample(run, time_ns, gaps_open, oldest_ns):
    for name, value in ((OPEN, gaps_open), (OLDEST, oldest_ns)):
        run.samples["b"].append((time_ns, name, value))
        run.values[name] = 0


def found_ns(run, index):
    """Return when the packet after a lost frame arrived."""
    lost_ns = run.decisions[index][0]
    return next(
        each.time_ns
        for each in run.packets["b"]
        if each.kind in ("DATA", "PAD") and each.time_ns > lost_ns
    )


def finding_of(run):
    return gap_counters_agree(Evidence(run.write()), run.traffic)


def test_without_samples_of_gaps_that_lasted_the_ages_are_zero(filling):
    finding = finding_of(filling)
    assert finding.outcome is PASS, finding.text


def follow(run, *ages, wrong=None):
    """Sample each gap at some times after it was found, and after it is filled. `wrong` is the
    (number, age) of the tenth gap, in place of (1, the time since it was found).
    """
    for index in range(30):
        since_ns = found_ns(run, index)
        for age_ns in ages:
            values = wrong if wrong is not None and index == 9 else (1, age_ns)
            sample(run, since_ns + age_ns, *values)
        sample(run, since_ns + OPEN_NS + SLACK_NS // 2, 0, 0)


@pytest.mark.parametrize("made_by", ["run", "filling"])
def test_ages_since_a_packet_showed_each_gap_are_a_pass(request, made_by):
    run = request.getfixturevalue(made_by)
    follow(run, 1_000_000, 1_600_000)
    finding = finding_of(run)
    assert finding.outcome is PASS, finding.text


@pytest.mark.parametrize("made_by", ["run", "filling"])
def test_an_open_gap_has_an_age(request, made_by):
    run = request.getfixturevalue(made_by)
    follow(run, 1_000_000, 1_600_000, wrong=(1, 0))
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text.startswith("rcv-oldest-gap is 0 ")


@pytest.mark.parametrize("made_by", ["run", "filling"])
def test_there_is_no_age_without_a_gap(request, made_by):
    run = request.getfixturevalue(made_by)
    follow(run, 1_000_000, wrong=(0, 1_000_000))
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text == "rcv-oldest-gap is 1000000 although rcv-gaps-open is 0"


def test_a_missing_position_is_counted(run):
    follow(run, 1_000_000, wrong=(0, 0))
    finding = finding_of(run)
    assert finding.outcome is FAIL
    assert finding.text.startswith("rcv-oldest-gap is 0 while position ")


@pytest.mark.parametrize(
    ("age_ns", "outcome"),
    [(1_000_001, FAIL), (1_000_000, PASS), (500_000, PASS), (200_000, FAIL)],
)
def test_an_age_is_that_of_the_gap(run, age_ns, outcome):
    follow(run, 1_000_000, wrong=(1, age_ns))
    finding = finding_of(run)
    assert finding.outcome is outcome, finding.text
    if outcome is FAIL:
        assert finding.text.startswith(f"rcv-oldest-gap is {age_ns}, expected 1")


@pytest.mark.parametrize(
    ("paused_ns", "age_ns", "outcome"),
    [(0, 500_000, FAIL), (1_000_000, 500_000, PASS), (1_000_000, 600_001, FAIL)],
)
def test_a_paused_driver_finds_a_gap_at_the_end_of_the_pause(run, paused_ns, age_ns, outcome):
    """The tenth gap could have been found 1.6 ms ago."""
    follow(run, 1_000_000, 1_600_000, wrong=(1, age_ns))
    begun_ns = found_ns(run, 9) - 10
    evidence = happen(run, pause(begun_ns, begun_ns + 10 + paused_ns))
    finding = gap_counters_agree(evidence, run.traffic)
    assert finding.outcome is outcome, finding.text


@pytest.mark.parametrize(("host", "outcome"), [("b", PASS), ("a", FAIL)])
def test_a_paused_driver_sets_no_age(run, host, outcome):
    """The tenth gap was found, and the driver paused before it set the age."""
    follow(run, 1_000_000, 1_600_000, wrong=(1, 0))
    begun_ns = found_ns(run, 9) + 10
    evidence = happen(run, pause(begun_ns, begun_ns + OPEN_NS, host=host))
    finding = gap_counters_agree(evidence, run.traffic)
    assert finding.outcome is outcome, finding.text


def test_an_age_before_the_fill_must_be_that_of_a_gap(filling):
    follow(filling, 1_500_000, wrong=(1, 2_500_001))
    finding = finding_of(filling)
    assert finding.outcome is PASS, finding.text
    follow(filling, 1_500_000, wrong=(1, FILL_DELAY_NS + SLACK_NS + 1))
    finding = finding_of(filling)
    assert finding.outcome is FAIL
    assert finding.text.endswith(f"but gaps are filled after {FILL_DELAY_NS} ns")


def test_in_real_time_the_ages_are_not_compared(run):
    follow(run, 1_000_000, wrong=(0, 0))
    run.case = run.case.model_copy(update={"fidelity": "netns"})
    assert finding_of(run).outcome is PASS
