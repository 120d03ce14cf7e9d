"""Scenarios from captures of a model stream lose the frames that the model lost."""

import re
import struct

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.lossy_stream import MS, NAK_DELAY_NS, STEP, LossyStream, Plan
from tests.stand_ins.synthetic_capture import packet
from windtunnel.harness.replay import from_capture, sightings
from windtunnel.harness.replay.capture_frames import CaptureError
from windtunnel.harness.replay.frame_outcome import DROP, infer_outcomes, repeatable
from windtunnel.harness.replay.from_capture import from_captures
from windtunnel.harness.replay.observed import _window
from windtunnel.harness.replay.observed_path import ObservedPath
from windtunnel.harness.replay.sightings import read_streams
from windtunnel.harness.scenario.loader import parse_scenario
from windtunnel.harness.scenario.schema.units import format_duration

PLANS = [
    *(Plan(seed, loss=0.05, resend_loss=0.3) for seed in range(3)),
    *(Plan(seed, loss=0.1, resend_loss=0.2, way_ns=2 * MS, has_numbers=False) for seed in range(3)),
]


def inferred(folder, point):
    (stream,) = read_streams(folder / f"{point}.pcap").values()
    return {
        (each.position // STEP + index, each.attempt)
        for each in infer_outcomes(stream)
        if each.what == DROP
        for index in range(each.length // STEP)
    }


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("point", ["pub", "sub1"])
def test_one_capture_infers_what_was_lost(tmp_path, plan, point):
    """A capture does not show whether an unneeded retransmit was lost, and the number of lost
    retransmits is an estimate.
    """
    stream = LossyStream(plan)
    every = set(stream.receivers[0].lost)
    lost = {each for each in every if {(each[0], at) for at in range(1, each[1])} <= every}
    found = inferred(stream.write(tmp_path), point)
    assert {each for each in found if each[1] == 1} == {each for each in lost if each[1] == 1}
    assert len(found ^ lost) <= len(lost) // 8
    result = from_captures([tmp_path / f"{point}.pcap"], tmp_path / "out.yaml")
    (figures,) = result.streams
    assert f"Reproduces 1 stream of {point}.pcap." in result.text
    assert (figures["late"], figures["copies"]) == (0, 0)
    assert len(lost) * 4 // 5 <= figures["lost"] <= len(lost)
    assert any("losses, delays and duplicates are estimates" in note for note in result.notes)


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_rule_of_a_scenario_selects_something(tmp_path, plan):
    """A rule for an attempt needs one for each attempt before it."""
    stream = LossyStream(plan)
    folder = stream.write(tmp_path)
    files = [folder / "pub.pcap", folder / "sub1.pcap"]
    for chosen in (files[:1], files[1:], files):
        result = from_captures(chosen, tmp_path / "out.yaml")
        assert all(figures["lost"] for figures in result.streams)
    (near,) = read_streams(files[0]).values()
    kept, left_out = repeatable(infer_outcomes(near))
    by_position = {}
    for each in kept:
        by_position.setdefault(each.position, set()).add(each.attempt)
    assert all(each == set(range(1, len(each) + 1)) for each in by_position.values())
    assert left_out >= 0


@pytest.mark.parametrize("plan", PLANS[::3], ids=str)
@pytest.mark.parametrize("points", [("pub",), ("sub1",), ("sub1", "pub")])
def test_a_scenario_keeps_pace_window_and_round_trip(tmp_path, plan, points):
    stream = LossyStream(plan)
    folder = stream.write(tmp_path)
    result = from_captures([folder / f"{each}.pcap" for each in points], tmp_path / "out.yaml")
    (figures,) = result.streams
    assert figures["window_bytes"] == plan.window * STEP
    lasts_ns = stream.sent_ns[plan.frames - 1] - stream.sent_ns[0]
    assert figures["bytes_per_s"] == (plan.frames - 1) * 32 * 10**9 // lasts_ns
    # One capture does not show how much of the round trip is the NAK delay.
    slack_ns = NAK_DELAY_NS if len(points) == 1 else 0
    assert 0 <= figures["round_trip_ns"] - 2 * plan.way_ns <= slack_ns
    scenario = parse_scenario(result.text, "out.yaml")
    (traffic,) = scenario.traffic
    assert f"|rcv-wnd={plan.window * STEP}" in traffic.receive
    assert traffic.content.pace.bytes_per_s == figures["bytes_per_s"]
    delay = scenario.network.link.impairments["both"].delay
    assert 2 * delay.mean_ns == figures["round_trip_ns"]
    assert any("sent at the capture's mean rate of" in note for note in result.notes)
    is_estimate = any("according to its NAKs and retransmits" in note for note in result.notes)
    assert is_estimate == (len(points) == 1)


def test_what_a_capture_does_not_show_is_noted(tmp_path):
    """Without a loss, NAKs do not show the round trip. A resting reader makes the sender pause."""
    plan = Plan(1, rest_every=100, rest_ns=900 * MS)
    folder = LossyStream(plan).write(tmp_path)
    result = from_captures([folder / "pub.pcap"], tmp_path / "out.yaml")
    assert result.streams[0]["round_trip_ns"] == 0
    assert "impairments" not in result.text
    notes = "\n".join(result.notes)
    assert "do not show its round trip, so packets are not delayed" in notes
    assert re.search(r"without its pauses of up to [789]\d\d\.\d ms", notes)
    both = from_captures([folder / "pub.pcap", folder / "sub1.pcap"], tmp_path / "out.yaml")
    assert both.streams[0]["round_trip_ns"] == 2 * plan.way_ns


def test_the_longest_of_different_round_trips_is_named(tmp_path, monkeypatch):
    found = {}
    for way_ns in (2 * MS, 5 * MS):
        made = LossyStream(Plan(1, loss=0.1, way_ns=way_ns)).write(tmp_path / str(way_ns))
        ((key, stream),) = read_streams(made / "pub.pcap").items()
        found[(*key[:-1], key[-1] + way_ns)] = stream
    monkeypatch.setattr(from_capture, "read_streams", lambda *_: found)
    result = from_captures([tmp_path / "pub.pcap"], tmp_path / "out.yaml")
    longest = format_duration(max(each["round_trip_ns"] for each in result.streams))
    text = f"the round trips of the streams differ, and the longest, {longest}, applies to all"
    assert text in result.notes


def test_a_wide_window_has_a_receive_buffer_and_half_a_term_at_most():
    path = ObservedPath(window_bytes=1 << 20)
    assert _window(path, 1 << 24) == f"|rcv-wnd={1 << 20}|so-rcvbuf={1 << 20}"
    assert _window(path, 1 << 16) == f"|rcv-wnd={1 << 15}"
    assert _window(ObservedPath(), 1 << 16) == ""


@pytest.mark.parametrize("point", ["sub1", "sub2"])
@pytest.mark.parametrize("sees_others", [False, True])
def test_the_losses_of_a_group_member_are_inferred(tmp_path, point, sees_others):
    plan = Plan(4, receivers=3, in_group=True, loss=0.03, sees_others=sees_others)
    stream = LossyStream(plan)
    (receiver,) = [each for each in stream.receivers if each.name == point]
    assert inferred(stream.write(tmp_path), point) == set(receiver.lost)
    result = from_captures([tmp_path / f"{point}.pcap"], tmp_path / "out.yaml")
    assert (result.streams[0]["late"], result.streams[0]["copies"]) == (0, 0)
    assert any("sent to a multicast group" in note for note in result.notes)


def test_frames_in_a_gap_that_nothing_filled_are_counted(tmp_path):
    stream = LossyStream(Plan(2, loss=0.2, is_reliable=False))
    folder = stream.write(tmp_path)
    (figures,) = from_captures([folder / "sub1.pcap"], tmp_path / "out.yaml").streams
    assert figures["lost"] == len(stream.receivers[0].lost)
    assert figures["reliable"] is False


def test_a_stream_whose_frames_all_precede_its_start_is_rejected(tmp_path):
    """A damaged SETUP names an initial term after all frames: none of them can have been sent."""
    capture = LossyStream(PLANS[0]).write(tmp_path) / "pub.pcap"
    content = bytearray(capture.read_bytes())
    setups = [found.start() for found in re.finditer(rb"\x28\0\0\0\0.\x05\0", content, re.DOTALL)]
    assert setups
    for at in setups:
        (initial,) = struct.unpack_from("<i", content, at + 20)
        struct.pack_into("<i", content, at + 20, initial + 1_000)
    capture.write_bytes(content)
    with pytest.raises(CaptureError, match="expected an Aeron stream, found"):
        from_captures([capture], tmp_path / "out.yaml")


def test_a_capture_with_too_many_streams_is_rejected(tmp_path, monkeypatch):
    """Each datagram may claim a stream of its own."""
    frames = [made.packet(made.START_NS, made.data(0, session=number)) for number in range(3)]
    capture = tmp_path / "claims.pcap"
    capture.write_bytes(made.pcap(frames))
    assert list(read_streams(capture)) == [(0, 1001), (1, 1001), (2, 1001)]
    monkeypatch.setattr(sightings, "STREAMS_MAX", 2)
    with pytest.raises(CaptureError, match="expected at most 2 streams, found 3: split the"):
        read_streams(capture)


def test_times_beyond_the_range_of_a_clock_are_not_compared(tmp_path):
    """Their differences have more than 64 bits."""
    files = [tmp_path / "near.pcapng", tmp_path / "far.pcapng"]
    for path, ticks in zip(files, (1 << 63, (1 << 63) - 1), strict=True):
        packets = [
            packet(0, made.setup()),
            packet(0, made.data(0, b"x" * 100)),
            packet(0, made.sm(0, 4_096), source=made.B, destination=made.A),
        ]
        head = made.pcapng_head(options=made.option(9, b"\x09"))
        path.write_bytes(head + made.pcapng_packets(packets, ticks=lambda _, ticks=ticks: ticks))
    with pytest.raises(CaptureError, match="found 3 packets, 3 untimed"):
        from_captures(files, tmp_path / "out.yaml")


def path_of(folder, times_ns):
    """Return the path that a capture of frames with these times shows."""
    payload = bytes(1_000)
    step = 1_056
    packets = [packet(made.START_NS, made.setup())]
    packets += [
        packet(made.START_NS + time_ns, made.data(index * step, payload))
        for index, time_ns in enumerate(times_ns)
    ]
    capture = folder / "pub.pcap"
    capture.write_bytes(made.pcap(packets))
    return from_captures([capture], folder / "out.yaml")


def test_a_clock_that_was_stepped_back_does_not_change_the_pace(tmp_path):
    steady = path_of(tmp_path, [index * MS for index in range(100)])
    assert not any("stepped back" in note for note in steady.notes)
    back = [index * MS - (index >= 50) * 3_600_000 * MS for index in range(100)]
    stepped = path_of(tmp_path, back)
    assert any("the capture's clock was stepped back" in note for note in stepped.notes)
    rates = [each.streams[0]["bytes_per_s"] for each in (stepped, steady)]
    assert rates[1] <= rates[0] <= rates[1] * 1.02


@pytest.mark.parametrize("step_ns", [-3_600_000 * MS, 0])
def test_a_pace_that_times_do_not_show_is_unknown(tmp_path, step_ns):
    found = path_of(tmp_path, [index * step_ns for index in range(100)])
    assert found.streams[0]["bytes_per_s"] == 0
    assert any("its pace is unknown" in note for note in found.notes)


def test_a_pace_beyond_the_limit_of_scenarios_is_unknown(tmp_path):
    found = path_of(tmp_path, [int(index >= 1_400) for index in range(1_500)])
    assert found.streams[0]["bytes_per_s"] == 0


def test_names_of_captures_cannot_add_keys_to_the_scenario(tmp_path):
    folder = LossyStream(PLANS[0]).write(tmp_path)
    hostile = folder / "a\nobserve_all: true\n#\x1b[31m\udcfe.pcap"
    (folder / "pub.pcap").rename(hostile)
    result = from_captures([hostile], tmp_path / "out.yaml")
    assert not parse_scenario(result.text, "out.yaml").observe_all
    shown = r"a\nobserve_all: true\n#\x1b[31m\udcfe.pcap"
    assert f"duplicate frames in {shown}" in result.text
    assert parse_scenario(result.text, "out.yaml").about.endswith(f"of {shown}.")
