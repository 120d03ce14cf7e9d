"""Windows, stalls and round trips of synthetic captures."""

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines
from windtunnel.reports.analysis.streams.flow_control import _answers_ns

MS = 1_000_000


def sent(at_ms, payload):
    return packet(START_NS + round(at_ms * MS), payload)


def feedback(at_ms, payload):
    return packet(
        START_NS + round(at_ms * MS), payload, source=made.B, destination=made.A,
        ports=(24_325, 40_000),
    )  # fmt: skip


def tables(tmp_path, *packets):
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap(packets))
    return analyze([str(path)])


def only(table):
    (row,) = table.to_pylist()
    return row


def test_a_pause_without_room_is_a_stall_that_the_receiver_caused(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 64)),
        sent(2, made.data(0, bytes(32))),
        feedback(42, made.sm(64, 64)),
        sent(43, made.data(64, bytes(32))),
    )
    stall = only(result.stalls)
    assert (stall["position"], stall["cause"]) == (64, "receiver")
    assert stall["duration_ns"] == 40 * MS
    assert stall["end_ns"] - stall["start_ns"] == 41 * MS
    window = only(result.windows)
    assert (window["stalls"], window["stall_ns"], window["idle_pauses"]) == (1, 40 * MS, 0)
    assert (window["window_min"], window["window_max"], window["limit"]) == (64, 64, 128)


def test_the_cause_of_a_stall_behind_a_gap_is_loss(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 96)),
        sent(2, made.data(0, b"")),
        sent(2, made.data(64, b"")),
        feedback(10, made.nak(32, 32)),
        sent(30, made.data(32, b"")),
        feedback(31, made.sm(96, 96)),
        sent(32, made.data(96, b"")),
    )
    assert only(result.stalls)["cause"] == "hole"
    assert only(result.windows)["nak_answer_min_ns"] == 20 * MS


def test_a_pause_with_room_is_no_stall(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 4096)),
        sent(2, made.data(0, b"")),
        sent(80, made.data(32, b"")),
    )
    assert result.stalls.num_rows == 0
    window = only(result.windows)
    assert (window["idle_pauses"], window["idle_ns"]) == (1, 78 * MS)


def test_a_pause_in_which_the_sender_had_room_is_idle(tmp_path):
    """The window is full for 60 ms, and has room for 200 ms before the sender uses it."""
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 64)),
        sent(2, made.data(0, bytes(32))),
        feedback(42, made.sm(64, 64)),
        sent(43, made.data(64, bytes(32))),
        feedback(103, made.sm(128, 64)),
        sent(303, made.data(128, bytes(32))),
        feedback(343, made.sm(192, 64)),
        sent(344, made.data(192, bytes(32))),
    )
    assert [each["position"] for each in result.stalls.to_pylist()] == [64, 192]
    window = only(result.windows)
    assert (window["stalls"], window["stall_ns"]) == (2, (40 + 40) * MS)
    assert (window["idle_pauses"], window["idle_ns"]) == (1, 260 * MS)


def test_a_short_pause_is_no_stall(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 32)),
        sent(2, made.data(0, b"")),
        feedback(8, made.sm(32, 32)),
        sent(11, made.data(32, b"")),
    )
    assert result.stalls.num_rows == 0


def test_intervals_of_status_messages(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 32)),
        sent(2, made.data(0, bytes(32))),
        feedback(4, made.sm(32, 64)),
        feedback(11, made.sm(32, 64)),
    )
    window = only(result.windows)
    assert window["status_interval_max_ns"] == 7 * MS
    assert window["status_interval_mean_ns"] == 5 * MS
    assert (window["window_min"], window["window_max"]) == (32, 64)


def test_round_trips_exclude_the_reception_delta(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        sent(0, made.data(0, b"")),
        feedback(1, made.rttm(7)),
        sent(1.5, made.rttm(7, flags=0, delta=100_000)),
        feedback(2, made.rttm(8)),
        sent(4, made.rttm(8, flags=0)),
        feedback(5, made.rttm(9)),
        feedback(6, made.rttm(9)),
    )
    window = only(result.windows)
    assert window["rtt_measurements"] == 2
    assert (window["rtt_min_ns"], window["rtt_max_ns"]) == (400_000, 2 * MS)


def test_positions_equal_those_that_a_receiver_would_count(tmp_path):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        sent(1, made.data(0, b"")),
        sent(2, made.data(64, b"")),
        feedback(3, made.sm(32, 4096)),
        feedback(4, made.nak(32, 32)),
        sent(5, made.data(32, b"")),
        sent(6, made.heartbeat(128)),
    )
    rows = result.positions.to_pylist()
    assert [row["high_position"] for row in rows] == [32, 96, 96, 96, 96, 128]
    assert [row["rebuilt_position"] for row in rows] == [32, 32, 32, 32, 96, 96]
    assert [row["consumed_position"] for row in rows] == [None, None, 32, 32, 32, 32]
    assert [row["limit"] for row in rows] == [None, None, *[32 + 4096] * 4]


def test_repair_times_are_in_nanoseconds_and_in_round_trips(tmp_path):
    packets = [sent(0, made.setup()), feedback(0, made.rttm(7)), sent(2, made.rttm(7, flags=0))]
    packets += [sent(3, made.data(0, b""))]
    for index, took_ms in enumerate((4, 6, 40)):
        at, hole = 100 * (index + 1), 32 + 64 * index
        packets += [
            sent(at, made.data(hole + 32, b"")),
            feedback(at + 1, made.nak(hole, 32)),
            sent(at + took_ms, made.data(hole, b"")),
        ]
    window = only(tables(tmp_path, *packets).windows)
    assert window["repairs"] == 3
    assert (window["repair_median_ns"], window["repair_p90_ns"]) == (6 * MS, 40 * MS)
    assert window["repair_max_ns"] == window["repair_p99_ns"] == 40 * MS
    assert window["repair_median_rtts"] == 3


def test_padding_needs_room_for_its_header_alone(tmp_path):
    """Padding whose end is beyond the limit is sent; the frame after it waits for room."""
    before = [sent(0, made.setup()), feedback(1, made.sm(0, 96)), sent(2, made.data(0, bytes(32)))]
    result = tables(
        tmp_path,
        *before,
        sent(50, made.pad(64, 960)),
        feedback(90, made.sm(1024, 96)),
        sent(91, made.data(1024, b"")),
    )
    stall = only(result.stalls)
    assert (stall["position"], stall["duration_ns"]) == (1024, 40 * MS)
    assert only(result.windows)["idle_pauses"] == 1


def test_a_sender_that_continues_without_room_waited_until_the_receiver_timed_out(tmp_path):
    """It waits for the receiver once. It is idle for 300 ms when it is beyond the limit."""
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, 64)),
        sent(2, made.data(0, bytes(32))),
        sent(1_002, made.data(64, bytes(32))),
        sent(1_302, made.data(128, bytes(32))),
    )
    stall = only(result.stalls)
    assert (stall["position"], stall["cause"]) == (64, "timeout")
    assert (stall["duration_ns"], stall["opened_limit"]) == (1_000 * MS, 64)
    assert only(result.windows)["idle_ns"] == 300 * MS
    assert (
        "1 flow control stall, up to 1 s, 1 of them until the sender no longer waited for this "
        "receiver" in summary_lines(result)[0]
    )


HALF_TERM = 65_536 // 2


@pytest.mark.parametrize(
    ("consumed", "rejoins"), [(64, 0), (160, 0), (64 + HALF_TERM, 0), (96 + HALF_TERM, 1)]
)
def test_consumption_beyond_the_accepted_positions_shows_that_the_receiver_joined_again(
    tmp_path, consumed, rejoins
):
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(64, 64)),
        sent(2, made.data(64, bytes(32))),
        sent(3, made.data(128, b"")),
        feedback(4, made.sm(consumed, 64)),
    )
    window = only(result.windows)
    assert window["rejoins"] == rejoins
    assert window["rejoined_position"] == (consumed if rejoins else None)
    text = f"status messages skipped to position {consumed:,}: the receiver joined the stream again"
    assert (text in summary_lines(result)[0]) == bool(rejoins)


def test_over_runs_end_more_than_half_a_term_after_the_consumed_position(tmp_path):
    half = 65_536 // 2
    before = [sent(0, made.setup()), feedback(1, made.sm(64, 128))]
    for end, over_runs in ((192, 0), (256, 0), (64 + half, 0), (64 + half + 32, 1)):
        frames = [sent(2, made.data(0, bytes(32))), sent(3, made.pad(64, end - 64))]
        result = tables(tmp_path, *before, *frames)
        assert only(result.windows)["over_runs"] == over_runs
        text = "1 frame ended beyond the window, where a receiver rejects frames"
        assert (text in summary_lines(result)[0]) == bool(over_runs)


def test_bytes_that_the_receiver_refused_beyond_its_window_were_not_lost(tmp_path):
    """The padding at the end of a term exceeds the window, so the data in its packet is refused."""
    half = 65_536 // 2
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, half)),
        sent(2, made.data(0, bytes(992))),
        feedback(3, made.sm(1_024, half)),
        sent(4, made.data(1_024, bytes(992)) + made.pad(2_048, half)),
        sent(5, made.heartbeat(2_048 + half)),
        feedback(6, made.nak(1_024, half + 1_024)),
        feedback(6, made.sm(1_024, half)),
        sent(8, made.data(1_024, bytes(992))),
    )
    flow = only(result.flows)
    assert (flow["requested_bytes"], flow["refused_bytes"]) == (half + 1_024, half + 1_024)
    assert only(result.gaps)["refused_bytes"] == half + 1_024
    line = summary_lines(result)[0]
    assert (
        "; the receiver requested 33,792 bytes in 1 gap, which had been captured here, up to "
        "33,792 of them refused beyond the receiver window; " in line
    )
    assert "lost" not in line


def test_a_request_for_part_of_a_refused_packet_counts_that_part(tmp_path):
    half = 65_536 // 2
    result = tables(
        tmp_path,
        sent(0, made.setup()),
        feedback(1, made.sm(0, half)),
        sent(2, made.data(0, bytes(992))),
        sent(4, made.data(1_024, bytes(992)) + made.pad(2_048, half)),
        feedback(6, made.nak(512, 1_024)),
    )
    flow = only(result.flows)
    assert (flow["requested_bytes"], flow["refused_bytes"]) == (1_024, 512)


def test_an_unfilled_gap_has_no_response_time_even_before_the_epoch():
    """Times of a damaged capture can be negative."""
    gaps = [
        {"first_nak_ns": nak_ns, "first_filled_ns": filled_ns}
        for nak_ns, filled_ns in ((-50, None), (None, 3), (-50, -20), (10, 25), (10, 5))
    ]
    assert _answers_ns(gaps) == [30, 15]
