"""Counters grouped by stream and filtered, as by Aeron's own tools."""

import re
import struct

import pytest

from tests.golden.reader import load_array
from tests.unit.harness.inspect.driver_folder import stream_key
from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files.cnc_file import read_cnc
from windtunnel.harness.inspect.backlog import (
    PUBLISHER,
    RECEIVER,
    SENDER,
    SUBSCRIBER,
    End,
    backlogs,
)
from windtunnel.harness.inspect.counter_filter import CounterFilter
from windtunnel.harness.inspect.gap_recovery import GapRecovery, gap_recoveries
from windtunnel.harness.inspect.streams import StreamCounter, streams

UDP = "aeron:udp?endpoint=localhost:24325"
IPC = "aeron:ipc"


def counter(type_id, value, *, registration=4, session=77, channel=UDP, reference=0, label=None):
    return CounterFacts(
        counter_id=100 + type_id,
        type_id=type_id,
        registration_id=registration,
        owner_id=1,
        reference_id=reference,
        label=label or f"name-{type_id}: {registration} {session} 1001 {channel}",
        key_hex=stream_key(registration, session, 1001, channel).ljust(112, b"\0").hex(),
        final_value=value,
    )


@pytest.fixture(scope="module")
def golden():
    return read_cnc(load_array("loss-reliable", "cnc.dat")).counters()


def ids(counters, **patterns):
    wanted = CounterFilter(**{name: re.compile(text) for name, text in patterns.items()})
    return [each.counter_id for each in counters if wanted.passes(each)]


def test_filters_accept_the_same_as_aeron_stat(golden):
    everything = [each.counter_id for each in golden]
    assert ids(golden) == everything == list(range(62))
    assert ids(golden, type="^0$") == list(range(46))
    assert ids(golden, type="[1-9]") == list(range(46, 62))
    assert ids(golden, type="^0$", identity="^1$") == [1]
    assert ids(golden, type="^[1-5]$", identity="^5$") == [58, 59]
    assert ids(golden, type="^[1-9]", session="^77$", stream="1001", channel="24326") == (
        list(range(46, 62))
    )


def test_a_filter_hides_other_streams_and_no_counters_without_a_stream(golden):
    assert ids(golden, session="^78$") == [*range(51), 57]
    assert ids(golden, stream="^1$") == [*range(51), 57]
    without_channels = [*range(46), 47, 48, 50, 57]
    assert ids(golden, channel="elsewhere") == without_channels
    assert ids(golden, channel="term-length=64k", type="^6$") == [49]


def test_the_streams_of_a_real_driver_are_shown(golden):
    receiving, sending = streams(golden)
    assert (receiving.session_id, receiving.stream_id) == (77, 1001)
    assert receiving.channel == "aeron:udp?endpoint=localhost:24326"
    assert receiving.counters == [
        StreamCounter("rcv-hwm", 5, 1_286_176),
        StreamCounter("rcv-pos", 5, 1_286_176),
        StreamCounter("rcv-naks-sent", 5, 79),
        StreamCounter("sub-pos", 2, 1_286_176),
    ]
    assert sending.channel.endswith("|session-id=77")
    assert len(sending.channel) > 92, "longer than the channel in the key"
    assert [each.name for each in sending.counters] == [
        "pub-pos (exclusive)",
        "pub-lmt",
        "snd-pos",
        "snd-lmt",
        "snd-bpe",
        "snd-naks-received",
    ]


def test_streams_are_separated_and_sorted():
    made = [counter(2, 1, session=9), counter(2, 2, session=-9), counter(2, 3, channel=IPC)]
    found = [(each.session_id, each.channel) for each in streams(made)]
    assert found == [(-9, UDP), (9, UDP), (77, IPC)]


def test_without_a_channel_in_the_label_that_of_the_key_is_used():
    (stream,) = streams([counter(2, 1, label="odd"), counter(0, 1), counter(10, 1)])
    assert (stream.channel, stream.counters) == (UDP, [StreamCounter("odd", 4, 1)])


def test_the_join_position_of_a_subscriber_is_not_part_of_its_channel():
    label = f"sub-pos: 4 77 1001 {UDP} @64"
    (stream,) = streams([counter(4, 1, label=label)])
    assert stream.channel == UDP


def test_the_backlogs_of_a_real_driver_are_shown(golden):
    receiving, sending = backlogs(golden)
    assert receiving.ends == [
        End(RECEIVER, 5, 1_286_176, backlog_bytes=0),
        End(SUBSCRIBER, 2, 1_286_176, backlog_bytes=0),
    ]
    assert sending.ends == [
        End(PUBLISHER, 4, 1_286_176, window_bytes=32_768),
        End(SENDER, 4, 1_286_176, backlog_bytes=0, window_bytes=32_768),
    ]


def test_each_end_is_measured_against_the_one_before_it():
    made = [
        counter(1, 1000),
        counter(12, 900),
        counter(9, 850),
        counter(2, 700),
        counter(3, 650, registration=6),
        counter(5, 600, registration=6),
        counter(4, 500, registration=2, reference=6),
        counter(4, 640, registration=3, reference=6),
    ]
    (stream,) = backlogs(made)
    assert stream.ends == [
        End(PUBLISHER, 4, 900, window_bytes=100),
        End(SENDER, 4, 700, backlog_bytes=200, window_bytes=150),
        End(RECEIVER, 6, 600, backlog_bytes=50),
        End(SUBSCRIBER, 2, 500, backlog_bytes=150),
        End(SUBSCRIBER, 3, 640, backlog_bytes=10),
    ]


def test_an_ipc_subscriber_and_a_spy_are_measured_against_the_publication():
    made = [
        counter(12, 900, channel=IPC),
        counter(4, 500, registration=2, reference=4, channel=IPC),
        counter(4, 400, registration=3, reference=4, channel=f"aeron-spy:{UDP}"),
        counter(4, 400, registration=8, reference=99, channel=IPC),
    ]
    found = {each.channel: each.ends for each in backlogs(made)}
    assert found[IPC] == [
        End(PUBLISHER, 4, 900),
        End(SUBSCRIBER, 2, 500, backlog_bytes=400),
        End(SUBSCRIBER, 8, 400),
    ]
    assert found[f"aeron-spy:{UDP}"] == [End(SUBSCRIBER, 3, 400, backlog_bytes=500)]


def test_a_key_with_a_wrong_length_is_truncated():
    for length, channel in ((-21, ""), (1000, "x" * 92)):
        key = struct.pack("<qiii", 4, 77, 1001, length).ljust(112, b"x").hex()
        (stream,) = streams([CounterFacts(1, 2, 4, 1, 0, "odd", key, 1)])
        assert stream.channel == channel


def test_the_longest_label_has_the_whole_channel():
    long = f"{UDP}|term-length=64k"
    made = [counter(2, 1), counter(9, 1, label=f"snd-lmt: 4 77 1001 {long}"), counter(1, 1)]
    (stream,) = streams(made)
    assert stream.channel == long


GAPS = {
    5_304: "rcv-gaps-open",
    5_305: "rcv-oldest-gap",
    5_306: "rcv-nak-retries",
    5_307: "rcv-repair-time",
    5_308: "rcv-gaps-filled-early",
}


def test_counters_of_gaps_are_shown_with_their_stream():
    counters = [counter(each, 7, label=f"{name}: 4 77 1001 {UDP}") for each, name in GAPS.items()]
    (found,) = streams(counters)
    assert [(each.name, each.value) for each in found.counters] == [
        (name, 7) for name in GAPS.values()
    ]


def test_the_recovery_of_the_newest_image_of_a_stream_is_shown():
    old = [counter(each, 1, registration=4) for each in GAPS]
    new = [counter(each, each, registration=9) for each in (5_304, 5_305, 5_308)]
    other = [counter(5_307, 3, session=78), counter(3, 99)]
    for made in (old + new + other, other + new + old):
        assert gap_recoveries(made) == {
            (77, 1001): GapRecovery(gaps_open=5_304, oldest_gap_ns=5_305, filled_early=5_308),
            (78, 1001): GapRecovery(repair_ns=3),
        }


def test_counters_of_retransmit_ranges_are_shown_with_their_stream():
    names = {5_301: "snd-retransmit-ranges", 5_302: "snd-bytes-not-resent", 5_303: "snd-rtt"}
    counters = [counter(each, 7, label=f"{name}: 4 77 1001 {UDP}") for each, name in names.items()]
    (found,) = streams(counters)
    assert [(each.name, each.value) for each in found.counters] == [
        (name, 7) for name in names.values()
    ]
