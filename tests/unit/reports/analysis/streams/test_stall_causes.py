"""The cause of a stall and the time of a repair, from the sender's capture and the receiver's."""

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.lossy_stream import MS, LossyStream, Plan
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.kernels.flow_control_kernel import NAK_SILENCE_NS
from windtunnel.reports.analysis.output.summary import summary_lines


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


def repeated_requests(until_ms, first_ms=12):
    """Make a window that is used up at 2 ms; its second frame is requested until `until_ms`."""
    packets = [sent(0, made.setup()), feedback(1, made.sm(0, 256))]
    packets += [sent(2, made.data(offset, b"")) for offset in range(0, 256, 32)]
    for at_ms in range(first_ms, until_ms, 10):
        packets += [feedback(at_ms, made.nak(32, 32)), sent(at_ms, made.data(32, b""))]
    return packets


def test_at_the_sender_a_stall_with_an_open_nak_is_repair(tmp_path):
    """Every frame passed here, so only NAKs show that the receiver could not consume."""
    result = tables(
        tmp_path, *repeated_requests(100), feedback(102, made.sm(256, 256)),
        sent(103, made.data(256, b"")),
    )  # fmt: skip
    (stall,) = result.stalls.to_pylist()
    assert (stall["cause"], stall["duration_ns"]) == ("hole", 100 * MS)


def test_at_the_sender_the_cause_of_a_stall_long_after_the_last_nak_is_the_receiver(tmp_path):
    result = tables(
        tmp_path, *repeated_requests(20), feedback(30, made.sm(64, 192)),
        feedback(1_002, made.sm(256, 256)), sent(1_003, made.data(256, b"")),
    )  # fmt: skip
    (stall,) = result.stalls.to_pylist()
    assert (stall["cause"], stall["duration_ns"]) == ("receiver", 1_000 * MS)


def test_a_nak_far_beyond_the_position_of_a_pausing_reader_blocks_nothing(tmp_path):
    packets = [sent(0, made.setup()), feedback(1, made.sm(0, 256))]
    packets += [sent(2, made.data(offset, b"")) for offset in range(0, 256, 32)]
    for at_ms in range(12, 100, 10):
        packets += [feedback(at_ms, made.nak(224, 32)), sent(at_ms, made.data(224, b""))]
    result = tables(
        tmp_path, *packets, feedback(102, made.sm(256, 256)), sent(103, made.data(256, b""))
    )
    (stall,) = result.stalls.to_pylist()
    assert stall["cause"] == "receiver"


def test_the_response_time_of_the_sender_is_no_round_trip(tmp_path):
    result = tables(tmp_path, *repeated_requests(100), feedback(102, made.sm(256, 256)))
    (window,) = result.windows.to_pylist()
    assert (window["repairs"], window["repair_median_ns"]) == (0, None)
    assert window["repair_median_rtts"] is None
    assert (window["resends"], window["resend_median_ns"]) == (1, 0)
    (gap,) = result.gaps.to_pylist()
    assert (gap["time_to_repair_ns"], gap["time_to_resend_ns"]) == (None, 0)
    assert gap["repaired_ns"] - gap["first_nak_ns"] == 80 * MS
    line = summary_lines(result)[0]
    text = "1 gap retransmitted, 0 ns median and 0 ns maximum after the first NAK"
    assert f"{text}, 1 of them more than once" in line
    assert "repaired in" not in line


def test_near_the_receiver_the_time_from_nak_to_repair_is_a_round_trip(tmp_path):
    result = tables(
        tmp_path, sent(0, made.setup()), sent(1, made.data(0, b"")), sent(2, made.data(64, b"")),
        feedback(3, made.nak(32, 32)), sent(13, made.data(32, b"")),
    )  # fmt: skip
    (window,) = result.windows.to_pylist()
    assert (window["repair_median_ns"], window["nak_answer_min_ns"]) == (11 * MS, 10 * MS)
    assert window["repair_median_rtts"] == 1.1


LONG_NS = 2 * NAK_SILENCE_NS
"""A shorter stall may end before the absence of a NAK shows that the gap is repaired."""
PLANS = [
    *(Plan(seed, loss=0.2, resend_loss=0.6) for seed in range(4)),
    *(Plan(seed, frames=600, loss=0.02, rest_every=100, rest_ns=300 * MS) for seed in range(4)),
    *(Plan(seed, loss=0.1, resend_loss=0.3, window=16, way_ns=MS) for seed in range(4)),
    Plan(7, frames=300, window=16, rest_every=40, rest_ns=80 * MS),
]


@pytest.mark.full(keep=4)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_both_ends_name_the_cause_of_the_stall(tmp_path, plan):
    stream = LossyStream(plan)
    result = analyze([str(stream.write(tmp_path))])
    stalls, causes = result.stalls.to_pylist(), set()
    for stall in stalls:
        # The receiver's capture is one way ahead of the sender's.
        later_ns = 0 if stall["vantage_point"] == "pub" else plan.way_ns
        times = stall["start_ns"] + later_ns, stall["opened_ns"] + later_ns
        share = stream.blocked_share(stream.receivers[0], *times, is_reading=True)
        least = stream.blocked_share(stream.receivers[0], *times, is_reading=False)
        if share > 0.6:
            assert stall["cause"] == "hole", stall
        if least < 0.4 and stall["duration_ns"] > LONG_NS:
            assert stall["cause"] == "receiver", stall
        causes.add(stall["cause"])
    assert causes == {"hole"} if plan.loss >= 0.1 else "receiver" in causes
    (sender, receiver) = result.windows.to_pylist()
    assert (sender["repairs"], sender["repair_median_rtts"]) == (0, None)
    if receiver["repairs"]:
        assert receiver["nak_answer_min_ns"] >= 2 * plan.way_ns
