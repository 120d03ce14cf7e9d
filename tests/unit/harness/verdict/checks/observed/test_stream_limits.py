"""Limits of observed streams: each figure is recomputed from the packets of the run."""

from itertools import pairwise

import numpy as np
import pytest

from tests.unit.harness.verdict.checks.observed import test_observed_streams
from tests.unit.harness.verdict.checks.observed.test_observed_streams import (
    HEADER,
    data_packets,
    findings_of,
)
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.artifact.rate_text import rate_text
from windtunnel.harness.artifact.run.result_row import duration
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChanges
from windtunnel.harness.scenario.resolved.traffic_case import StreamLimitsCase
from windtunnel.harness.scenario.schema.host_event import EventCase
from windtunnel.harness.verdict.core.finding import AtFault
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.views.series import Series

run = test_observed_streams.run
S = 1_000_000_000
HOUR_NS = 3600 * S


def limited(run, name, **limits):
    """Return the finding of a run whose stream has limits."""
    seen = run.case.observed[0].model_copy(update={"limits": StreamLimitsCase(**limits)})
    run.case = run.case.model_copy(update={"observed": (seen,)})
    return findings_of(run)[name]


def positions(run):
    """Return when each position of the log had arrived first, with all data before it."""
    frames = run.log.frames
    arrived = {}
    for each in sorted(run.packets["b"], key=lambda packet: packet.time_ns):
        if each.kind in ("DATA", "PAD"):
            arrived.setdefault(each.payload[8:24], each.time_ns)
    times = []
    for index in range(len(frames)):
        times.append(arrived[run.frame_bytes(index)[8:24]])
    return [max(times[: index + 1]) for index in range(len(times))]


def test_a_stream_without_limits_has_no_such_check(run):
    assert not any(name.startswith(("observed_go", "observed_si")) for name in findings_of(run))


def test_goodput_is_the_payload_that_arrived_by_the_time(run):
    sent = data_packets(run, "a")[0].time_ns
    times = positions(run)
    lengths = [int(each) - HEADER for each in run.log.frames["frame_length"]]
    kinds = [run.frame_bytes(index)[6] for index in range(len(times))]
    payload = sum(length for length, kind in zip(lengths, kinds, strict=True) if kind == 1)
    rate = payload * S / (max(times) - sent)
    found = limited(run, "observed_goodput", least_bytes_per_s=int(rate) - 1)
    assert found.outcome is Outcome.PASS, found.text
    assert f"goodput is {rate_text(rate)}," in found.text
    found = limited(run, "observed_goodput", least_bytes_per_s=int(rate) + 2)
    assert (found.outcome, found.at_fault) == (Outcome.FAIL, AtFault.APPLICATION)


def test_the_longest_silence_is_between_data_that_is_in_order(run):
    times = sorted({*positions(run)})
    longest_ns = max(later - sooner for sooner, later in pairwise(times))
    found = limited(run, "observed_silence", silence_most_ns=longest_ns)
    assert found.outcome is Outcome.PASS, found.text
    assert f"no new data for {duration(longest_ns)} from position " in found.text
    found = limited(run, "observed_silence", silence_most_ns=longest_ns - 1)
    assert found.outcome is Outcome.FAIL
    assert found.position is not None


def interrupt(run, ended_ns):
    """Let an event of host b end at a time."""
    order = EventCase(id="cut", host="b", process="all", trigger="after", at=1,
                      action="pause", lasts_ns=1)  # fmt: skip
    run.case = run.case.model_copy(update={"events": (order,)})
    run.folder.make()
    write_applied_events(
        run.folder.host_events, [AppliedEvent("cut", "b", "pause", ["driver"], 1, ended_ns)]
    )


def test_recovery_is_from_the_end_of_an_event_to_the_next_data_in_order(run):
    times = positions(run)
    middle = len(times) // 2
    ended_ns = next(
        times[index] + 1
        for index in range(middle, len(times) - 1)
        if times[index + 1] > times[index]
    )
    next_ns = min(each for each in times if each >= ended_ns)
    interrupt(run, ended_ns)
    found = limited(run, "observed_recovery", recovery_most_ns=HOUR_NS)
    assert found.outcome is Outcome.PASS, found.text
    assert "after the pause of host b (event cut), from position " in found.text
    # New data may have been sent later than the end.
    assert limited(run, "observed_recovery", recovery_most_ns=next_ns - ended_ns).outcome is (
        Outcome.PASS
    )
    assert limited(run, "observed_recovery", recovery_most_ns=1).outcome is Outcome.FAIL


def test_recovery_is_also_from_the_end_of_impairments_of_the_stream_s_link(run):
    times = positions(run)
    storm = EventCase(id="storm", host="", process="driver", trigger="after", at=1,
                      action="impair", lasts_ns=1,
                      impairments=(ImpairmentCase(link="b->a", delay_ns=1),))  # fmt: skip
    both = tuple(ImpairmentCase(link=name) for name in ("a->b", "b->a"))
    run.case = run.case.model_copy(update={"events": (storm,), "impairments": both})
    run.folder.make()
    applied = AppliedEvent("storm", "", "impair", [], 1, times[len(times) // 2] + 1)
    write_applied_events(run.folder.host_events, [applied])
    LinkChanges().write(run.folder.link_changes)
    found = limited(run, "observed_recovery", recovery_most_ns=HOUR_NS)
    assert found.outcome is Outcome.PASS, found.text
    assert "after the impairments of event storm, from position " in found.text
    assert limited(run, "observed_recovery", recovery_most_ns=1).outcome is Outcome.FAIL


def test_data_that_never_comes_after_an_event_is_no_recovery(run):
    ended_ns = positions(run)[-2] + 1
    last = data_packets(run, "b")[-1].payload
    run.packets["b"] = [each for each in run.packets["b"] if each.payload != last]
    interrupt(run, ended_ns)
    found = limited(run, "observed_recovery", recovery_most_ns=HOUR_NS)
    assert found.outcome is Outcome.FAIL
    assert "no new data after the pause of host b (event cut)" in found.text


def test_an_event_after_the_last_data_needs_no_recovery(run):
    interrupt(run, positions(run)[-1] + 1)
    found = limited(run, "observed_recovery", recovery_most_ns=1)
    assert found.outcome is Outcome.PASS
    assert found.text == "no interruption ended while there was data to send"


def series(first_ns, steps):
    times_ns, values = (np.array(each, dtype=np.int64) for each in zip(*steps, strict=True))
    return Series("made", times_ns + first_ns, times_ns + first_ns, values)


def test_back_pressure_lasts_until_the_publication_goes_on(run, monkeypatch):
    """At its limit of 64 for 30 ns, and of 96 for 10 ns, and at the end, when it was closed."""
    last_ns = max(each.time_ns for each in data_packets(run, "a"))
    made = {
        counter_key.PUBLISHER_LIMIT: [(0, 64), (50, 96), (70, 200), (1000, 128)],
        counter_key.PUBLISHER_POSITION: [(10, 32), (20, 64), (60, 96), (80, 128)],
    }
    where = "windtunnel.harness.verdict.checks.observed.stream_limits.stream_series"
    monkeypatch.setattr(where, lambda evidence, host, kind, *_: series(last_ns - 500, made[kind]))
    name = "observed_back_pressure"
    found = limited(run, name, back_pressure_most_ns=30)
    assert found.outcome is Outcome.PASS, found.text
    found = limited(run, name, back_pressure_most_ns=29)
    assert (found.outcome, found.position) == (Outcome.FAIL, 64)


@pytest.mark.parametrize(("most", "outcome"), [(1, Outcome.FAIL), (2, Outcome.PASS)])
def test_images_that_replace_each_other_are_counted(run, monkeypatch, most, outcome):
    where = "windtunnel.harness.verdict.checks.observed.stream_limits.image_count"
    monkeypatch.setattr(where, lambda *_: 2)
    found = limited(run, "observed_images", images_most=most)
    assert (found.outcome, found.text) == (
        outcome,
        f"2 images at host b, expected at most {most}",
    )


def test_one_image_is_counted_by_its_counters(run):
    found = limited(run, "observed_images", images_most=1)
    assert (found.outcome, found.text) == (Outcome.PASS, "1 image at host b, expected at most 1")
