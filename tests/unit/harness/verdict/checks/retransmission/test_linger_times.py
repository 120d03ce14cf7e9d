"""The longest time for which a sender of many ranges may ignore NAKs."""

import struct

import pytest

from tests.unit.harness.verdict.synthetic_run import (
    PORT,
    SENDER_PORT,
    SESSION_ID,
    START_NS,
    STREAM_ID,
    Packet,
    make_run,
)
from tests.unit.harness.verdict.views.test_pauses import happen, pause
from windtunnel.harness.verdict.checks.retransmission.linger_times import (
    LINGER_NS_MAX,
    SETTING,
    TURNS_NS,
    linger_times,
)
from windtunnel.harness.verdict.core.evidence import Evidence

MS = 1_000_000


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path)


def measure(run, after_ms, echo, took_ms, answers=None):
    """Let a ask b for its round-trip time."""
    asked_ns = START_NS + after_ms * MS
    for source, flags, time_ns in (("a", 0x80, asked_ns), ("b", 0, asked_ns + took_ms * MS)):
        known = echo if source == "a" or answers is None else answers
        facts = SESSION_ID, STREAM_ID, known, 0, 0
        payload = struct.pack("<iBBHiiqqq", 40, 0, flags, 6, *facts)
        ports = (SENDER_PORT, PORT) if source == "a" else (PORT, SENDER_PORT)
        other = "b" if source == "a" else "a"
        run.packets["a"].append(Packet(time_ns, source, other, ports, payload, "RTTM"))


def longest_ms(run, after_ms):
    linger = linger_times(Evidence(run.write()), run.traffic)
    return (linger.at_ns(START_NS + after_ms * MS) - TURNS_NS) / MS


def test_without_a_measurement_the_setting_counts(run):
    assert longest_ms(run, 100) == 10
    run.case = run.case.model_copy(update={"drivers": {"a": {SETTING: "25ms"}}})
    assert longest_ms(run, 100) == 25


def test_a_measurement_counts_from_its_reply(run):
    measure(run, 100, 1, 32)
    assert [longest_ms(run, each) for each in (131, 132, 300)] == [10, 33, 33]


def test_a_paused_sender_reads_a_reply_at_the_end_of_its_pause(run):
    measure(run, 100, 1, 32)
    begun_ns = START_NS + 110 * MS
    evidence = happen(run, pause(begun_ns, begun_ns + 54 * MS, host="a"))
    linger = linger_times(evidence, run.traffic)
    found = [(linger.at_ns(START_NS + each * MS) - TURNS_NS) / MS for each in (163, 164)]
    assert found == [10, 66]


def test_the_longest_measurement_counts(run):
    for at, took in enumerate((32, 64, 4)):
        measure(run, 50 + 100 * at, at, took)
    assert [longest_ms(run, each) for each in (90, 220, 330)] == [33, 66, 66]


def test_a_short_round_trip_does_not_shorten_the_setting(run):
    measure(run, 100, 1, 4)
    assert longest_ms(run, 200) == 10


def test_a_reply_to_another_request_measures_nothing(run):
    measure(run, 100, 1, 32, answers=2)
    assert longest_ms(run, 200) == 10


def test_a_group_is_not_measured(run):
    measure(run, 100, 1, 32)
    channel = f"aeron:udp?control-mode=dynamic|control=10.64.0.10:{PORT}"
    traffic = run.traffic.model_copy(update={"channel": channel})
    found = linger_times(Evidence(run.write()), traffic)
    assert found.at_ns(START_NS + 200 * MS) == 10 * MS + TURNS_NS


@pytest.mark.parametrize("value", ["unreadable", "3s"])
def test_the_longest_possible_time_is_a_limit(run, value):
    run.case = run.case.model_copy(update={"drivers": {"a": {SETTING: value}}})
    found = linger_times(Evidence(run.write()), run.traffic)
    assert found.at_ns(START_NS) == LINGER_NS_MAX


def test_missing_evidence_permits_the_longest_time(run):
    path = run.write()
    run.folder.capture("b").unlink()
    assert linger_times(Evidence(path), run.traffic).at_ns(START_NS) == LINGER_NS_MAX
