"""Round trips that applications report: percentiles, limits, and invalid lines."""

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.verdict.checks.reported_round_trips import NAME, reported_round_trips
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.judge import judge

MS = 1_000_000


def finding_of(folder, log, limits):
    run = make_run(folder)
    one = ApplicationCase(
        id="one", host="b", command=("x",), stop_within_ns=1, round_trips_ns=limits
    )
    run.case = run.case.model_copy(update={"applications": (one,)})
    path = run.write()
    file = run.folder.host("b").application("one").log
    file.parent.mkdir(parents=True, exist_ok=True)
    if log is not None:
        file.write_text(log)
    assert any(each.name == NAME for each in judge(path).checks) == any(limits)
    return reported_round_trips(Evidence(path))


LOG = "hello\n" + "".join(f"WT RTT {number * MS}\n" for number in range(1, 201)) + "xWT RTT 9\n"


@pytest.mark.parametrize(
    ("limits", "outcome", "text"),
    [
        ((100 * MS, 198 * MS, 200 * MS), Outcome.PASS, "p50 100 ms; p99 198 ms; longest 200 ms"),
        ((99 * MS, 0, 0), Outcome.FAIL, "p50 100 ms, expected at most 99 ms; p99 198 ms; "),
        ((0, 197 * MS, 0), Outcome.FAIL, "p99 198 ms, expected at most 197 ms"),
        ((0, 0, 199 * MS), Outcome.FAIL, "longest 200 ms, expected at most 199 ms"),
    ],
)
def test_percentiles_are_compared_with_their_limits(tmp_path, limits, outcome, text):
    (found,) = finding_of(tmp_path, LOG, limits)
    assert (found.outcome, found.about) == (outcome, "one")
    assert found.text.startswith("200 round trips of one: p50 100 ms")
    assert text in found.text


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("hello\n", "one has reported no round trip: expected lines `WT RTT nanoseconds` in"),
        ("WT RTT 5\nWT RTT 5ms\n", "line 2 of hosts/b/application-one.log: expected `WT RTT"),
        (f"WT RTT {'9' * 19}\n", "line 1 of "),
        (None, "application-one.log: "),
    ],
)
def test_what_cannot_be_compared_is_inconclusive(tmp_path, log, text):
    (found,) = finding_of(tmp_path, log, (1, 0, 0))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert text in found.text


def test_without_limits_nothing_is_read(tmp_path):
    assert finding_of(tmp_path, "WT RTT x\n", (0, 0, 0)) == []
