"""The figures of observed streams equal a plain computation from the two captures."""

import pytest

from tests.naive.observed_figures import figures, first_arrivals, new_data_ns
from tests.unit.harness.verdict.synthetic_run import ADDRESS, SyntheticRun, make_run
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.run.result_row import ResultRow, duration
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.judge import judge
from windtunnel.harness.verdict.results.observed_rows import observed_rows


@pytest.fixture
def run(tmp_path) -> SyntheticRun:
    """A run whose only stream is observed."""
    made = make_run(tmp_path)
    seen = made.traffic.model_copy(
        update={"id": "seen", "observed": True, "rejoins": True, "total_bytes": 1}
    )
    application = ApplicationCase(id="one", host="a", command=("x",), stop_within_ns=1)
    made.case = made.case.model_copy(
        update={
            "observed": (seen,), "traffic": (), "faults": (), "expect": (),
            "applications": (application,),
        }
    )  # fmt: skip
    return made


def rows(run: SyntheticRun) -> list[ResultRow]:
    evidence = Evidence(run.write())
    assert not isinstance(evidence.case, str)
    return list(observed_rows(evidence, evidence.case))


def plain(run: SyntheticRun) -> dict:
    folder = run.folder
    stream = run.case.observed[0].stream_id
    return figures(folder.capture("a"), folder.capture("b"), stream, ADDRESS["a"], ADDRESS["b"])


def test_the_figures_are_those_of_a_plain_computation(run):
    (row,) = rows(run)
    expected = plain(run)
    assert expected["lost_frames"] > 0
    assert expected["gaps"] > 0
    assert {name: getattr(row, name) for name in expected} == expected
    assert (row.traffic, row.from_host, row.to_host) == ("seen", "a", "b")


def test_changes_of_a_capture_change_both_figures_equally(run):
    for index in (3, 9, 10):
        lost = [each for each in run.packets["b"] if each.kind == "DATA"][index]
        run.packets["b"].remove(lost)
    (row,) = rows(run)
    expected = plain(run)
    assert {name: getattr(row, name) for name in expected} == expected


def test_the_longest_silence_may_be_before_the_first_new_data(run):
    first = next(each for each in run.packets["a"] if each.kind == "DATA")
    first.time_ns -= 10**9
    (row,) = rows(run)
    assert row.longest_silence_ns == plain(run)["longest_silence_ns"] > 10**9


def test_figures_that_need_applications_are_absent(run):
    (row,) = rows(run)
    assert row.delivered_messages is None
    assert row.published_messages is None
    assert row.latency_p50_ns is None
    assert dict(row.cells())["delivered"] == "-"


@pytest.mark.parametrize(
    ("received", "delivered"), [((0, 1, 2), "3 of 3"), ((0, 0, 2, 7), "2 of 3"), ((), "-")]
)
def test_messages_that_both_applications_report_are_delivered(run, received, delivered):
    reader = ApplicationCase(id="two", host="b", command=("x",), stop_within_ns=1)
    applications = (*run.case.applications, reader)
    run.case = run.case.model_copy(update={"applications": applications})
    path = run.write()
    sent = "".join(f"WT SENT {number} 5\n" for number in range(3))
    run.folder.host("a").application("one").log.write_text(sent)
    got = "".join(f"WT GOT {number} 5\n" for number in received)
    run.folder.host("b").application("two").log.write_text(got)
    (row,) = observed_rows(Evidence(path), run.case)
    assert dict(row.cells())["delivered"] == delivered
    run.folder.host("a").application("one").log.write_text(sent + "WT SENT 9 5\n")
    (row,) = observed_rows(Evidence(path), run.case)
    assert dict(row.cells())["delivered"] == "-"


def test_the_row_is_in_the_verdict_and_alone(run):
    verdict = judge(run.write())
    assert [each.traffic for each in verdict.results] == ["seen"]
    assert not [each for each in verdict.checks if each.name == "results"]


def with_event(run, began_ns, ended_ns, **changes):
    event = EventCase(
        id="cut", host="b", process="driver", trigger="after", at=1, action="partition", lasts_ns=1
    ).model_copy(update=changes)
    run.case = run.case.model_copy(update={"events": (event,)})
    path = run.write()
    applied = AppliedEvent("cut", event.host, event.action, [], began_ns, ended_ns)
    write_applied_events(run.folder.host_events, [applied])
    return judge(path).observed.sentences


def test_the_silence_around_an_event_is_that_of_a_plain_computation(run):
    run.write()
    stream = run.case.observed[0].stream_id
    start, first = first_arrivals(run.folder.capture("b"), stream, ADDRESS["a"], ADDRESS["b"])
    times_ns = new_data_ns(first, start)
    middle = len(times_ns) // 2
    began_ns, ended_ns = times_ns[middle] + 1, times_ns[middle + 2] - 1
    (text,) = with_event(run, began_ns, ended_ns)
    pairs = zip(times_ns[middle : middle + 2], times_ns[middle + 1 : middle + 3], strict=True)
    # The first one, if several are of the same length.
    earlier_ns, next_ns = max(pairs, key=lambda pair: pair[1] - pair[0])
    silence_ns = next_ns - earlier_ns
    side = "after" if next_ns >= ended_ns else "before"
    assert text.startswith("seen at b: partition 'cut' (host b) from ")
    expected = f": no new data for {duration(silence_ns)}, until "
    assert text.endswith(f"{expected}{duration(abs(next_ns - ended_ns))} {side} its end")


@pytest.mark.parametrize(("link", "is_named"), [("a->b", True), ("b->a", True), ("a->c", False)])
def test_only_events_of_its_hosts_and_links_are_named(run, link, is_named):
    run.write()
    first_ns = next(each.time_ns for each in run.packets["b"] if each.kind == "DATA")
    impaired = (ImpairmentCase(link=link),)
    event = {"host": "", "action": "impair", "impairments": impaired}
    assert bool(with_event(run, first_ns, first_ns + 1000, **event)) == is_named


def test_an_event_before_or_after_a_session_is_not_named(run):
    run.write()
    sent = [each for each in run.packets["a"] if each.kind == "DATA"]
    first_ns, last_ns = sent[0].time_ns, run.packets["b"][-1].time_ns
    assert with_event(run, first_ns - 9, first_ns - 1) == []
    assert with_event(run, last_ns + 1, last_ns + 9) == []
    assert len(with_event(run, first_ns - 9, first_ns + 9)) == 1


def test_a_replaced_image_has_no_figures(run):
    event = EventCase(
        id="crash", host="b", process="driver", trigger="after", at=1, action="kill", lasts_ns=1
    )
    run.case = run.case.model_copy(update={"events": (event,)})
    path = run.write()
    applied = AppliedEvent("crash", "b", "kill", ["driver"], 1, 2)
    write_applied_events(run.folder.host_events, [applied])
    evidence = Evidence(path)
    assert list(observed_rows(evidence, evidence.case)) == []


def test_a_stream_that_is_never_sent_has_no_row(run):
    seen = run.case.observed[0].model_copy(update={"stream_id": 77})
    run.case = run.case.model_copy(update={"observed": (seen,)})
    assert rows(run) == []
