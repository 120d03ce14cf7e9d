"""A reliable receiver skips no gap, whatever a capture shows."""

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.synthetic_capture import START_NS, packet
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines


def sent(at_us, offset, destination=made.B):
    return packet(START_NS + at_us * 1_000, made.data(offset, b""), destination=destination)


def feedback(at_us, payload, source=made.B):
    return packet(
        START_NS + at_us * 1_000, payload, source=source, destination=made.A,
        ports=(24_325, 40_000),
    )  # fmt: skip


def tables(tmp_path, *packets):
    path = tmp_path / "made.pcap"
    path.write_bytes(made.pcap([packet(START_NS, made.setup()), *packets]))
    return analyze([str(path)])


def test_a_nak_that_crossed_a_late_original_needs_no_repair(tmp_path):
    control = feedback(9, made.nak(0, 32)), feedback(19, made.sm(64, 64))
    result = tables(tmp_path, sent(1, 0), sent(2, 32), *control)
    (gap,) = result.gaps.to_pylist()
    assert (gap["outcome"], gap["repaired_ns"], gap["time_to_repair_ns"]) == (
        "repaired",
        None,
        None,
    )
    line = summary_lines(result)[0]
    assert "1 gap repaired without a retransmit after the NAK" in line
    assert "skipped" not in line


def test_frames_that_arrived_at_another_port_of_the_receiver_were_not_skipped(tmp_path):
    """A replay merge: the live stream begins before the replay has ended."""
    other = "10.0.0.7"
    replayed = [sent(at, 32 * at, other) for at in range(1, 9)]
    live = [sent(20, 32), sent(21, 192), sent(22, 224)]
    control = [feedback(40, made.sm(256, 64)), feedback(41, made.sm(256, 64), other)]
    result = tables(tmp_path, *replayed, *live, *control)
    (gap,) = result.gaps.to_pylist()
    assert (gap["position"], gap["length"], gap["outcome"]) == (64, 128, "elsewhere")
    assert {flow["gap_fills_max"] for flow in result.flows.to_pylist()} == {0}
    text = "\n".join(summary_lines(result))
    assert "128 bytes were not needed from this destination" in text
    assert "lost" not in text


def test_a_reliable_receiver_that_joined_later_skipped_nothing(tmp_path):
    result = tables(
        tmp_path, sent(1, 0), sent(2, 320), feedback(3, made.sm(352, 64)), sent(4, 384),
        feedback(5, made.nak(352, 32)), sent(6, 352), feedback(7, made.sm(416, 64)),
    )  # fmt: skip
    assert [gap["outcome"] for gap in result.gaps.to_pylist()] == ["elsewhere", "repaired"]


def test_an_unreliable_receiver_skipped_what_no_destination_has(tmp_path):
    other = "10.0.0.7"
    both = [sent(at, 32 * at, end) for at in (1, 2, 4, 5) for end in (made.B, other)]
    result = tables(tmp_path, *both, feedback(40, made.sm(192, 64)))
    assert [gap["outcome"] for gap in result.gaps.to_pylist()] == ["passed", "open"]


def test_consumption_far_behind_the_captured_position_is_reported(tmp_path):
    frames = [sent(at, 32 * at) for at in range(40)]
    result = tables(tmp_path, *frames, feedback(50, made.sm(320, 256)))
    assert "; status messages report consumption only to position 320; " in summary_lines(result)[0]
    result = tables(tmp_path, *frames, feedback(50, made.sm(1_024, 256)))
    assert "status messages" not in summary_lines(result)[0]
