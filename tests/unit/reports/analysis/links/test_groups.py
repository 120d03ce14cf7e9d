"""Links, losses and repairs of the members of a multicast group equal those of a model."""

from dataclasses import replace

import pytest

from tests.stand_ins import synthetic_capture as made
from tests.stand_ins.lossy_stream import MS, STEP, LossyStream, Plan
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.output.summary import summary_lines

PLANS = [
    Plan(4, receivers=3, in_group=True, loss=0.03),
    Plan(5, receivers=3, in_group=True, loss=0.03, resend_loss=0.2),
    Plan(6, receivers=3, in_group=True, loss=0.03, sees_others=True),
    Plan(7, receivers=3, in_group=True, loss=0.03, resend_loss=0.2, sees_others=True),
    Plan(8, receivers=3, in_group=True, loss=0.03, has_numbers=False),
    Plan(9, receivers=3, in_group=True, loss=0.03, sees_others=True, has_numbers=False),
    Plan(10, receivers=2, in_group=True, way_ns=MS),
]


def at(tables, point, name):
    return [row for row in getattr(tables, name).to_pylist() if row["vantage_point"] == point]


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_links_lead_from_the_sender_to_each_member(tmp_path, plan):
    stream = LossyStream(plan)
    links = analyze([str(stream.write(tmp_path))]).links.to_pylist()
    assert [(link["from_point"], link["to_point"]) for link in links] == [
        ("pub", each.name) for each in stream.receivers
    ]
    for link, receiver in zip(links, stream.receivers, strict=True):
        assert link["sent_frames"] == plan.frames + stream.resends
        assert link["lost_frames"] == len(receiver.lost)
        assert (link["unsent_frames"], link["copied_frames"]) == (0, 0)
        assert not link["is_corrected"]
        assert link["delay_min_ns"] == plan.way_ns
        assert link["control_lost"] == 0
        if plan.has_numbers:
            assert (link["reordered_frames"], link["delay_max_ns"]) == (0, plan.way_ns)


@pytest.mark.full(keep=3)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_losses_of_members_and_retransmissions_of_the_sender(tmp_path, plan):
    stream = LossyStream(plan)
    result = analyze([str(stream.write(tmp_path))])
    (sender,) = at(result, "pub", "flows")
    assert sender["resent_frames"] + sender["duplicate_frames"] == stream.resends
    assert sender["first_frames"] == plan.frames
    for receiver in stream.receivers:
        gaps = [
            gap for gap in at(result, receiver.name, "gaps") if gap["cause"] == "before capture"
        ]
        lost = {index for index, attempt in receiver.lost if attempt == 1}
        assert sum(gap["length"] for gap in gaps) == len(lost) * STEP
        assert {gap["outcome"] for gap in gaps} <= {"repaired", "filled"}
        if plan.has_numbers or plan.sees_others:
            assert {gap["outcome"] for gap in gaps} <= {"repaired"}
        (line,) = [each for each in summary_lines(result) if f" at {receiver.name} to " in each]
        assert "reordered" not in line
        if lost and plan.has_numbers:
            assert (
                f"; lost {len(lost) * STEP:,} bytes of first transmissions in {len(gaps)} gap"
                in line
            )


def test_the_clock_of_each_member_is_compared_with_the_sender_only(tmp_path):
    stream = LossyStream(PLANS[2])
    ahead_ns = 5_000 * MS
    stream.packets["sub2"] = [
        each._replace(time_ns=each.time_ns + ahead_ns) for each in stream.packets["sub2"]
    ]
    links = analyze([str(stream.write(tmp_path))]).links.to_pylist()
    offsets = [link["clock_offset_ns"] for link in links]
    assert offsets == [0, ahead_ns, 0]
    assert [link["is_corrected"] for link in links] == [False, True, False]
    assert {link["delay_min_ns"] for link in links} == {PLANS[2].way_ns}


def test_status_messages_of_another_member_do_not_pass_a_gap(tmp_path):
    """Member 2 consumes further while member 1 waits for a lost frame and sends its NAK late."""
    packets = [made.packet(made.START_NS, made.setup(), destination="224.0.1.1")]
    for at_us, offset in ((1, 0), (2, 64), (3, 96)):
        packets.append(in_group(at_us, made.data(offset, b"")))
    packets.append(from_member(4, "10.0.0.8", made.sm(32, 4_096)))
    packets.append(from_member(5, "10.0.0.9", made.sm(128, 4_096)))
    packets.append(from_member(6, "10.0.0.8", made.nak(32, 32)))
    packets.append(in_group(9, made.data(32, b"")))
    path = tmp_path / "member.pcap"
    path.write_bytes(made.pcap(packets))
    result = analyze([str(path)])
    (gap,), (flow,) = result.gaps.to_pylist(), result.flows.to_pylist()
    assert (gap["outcome"], gap["time_to_repair_ns"]) == ("repaired", 7_000)
    assert (flow["resent_frames"], flow["late_frames"]) == (1, 0)


def in_group(at_us, payload):
    return made.packet(made.START_NS + at_us * 1_000, payload, destination="224.0.1.1")


def from_member(at_us, address, payload):
    return made.packet(
        made.START_NS + at_us * 1_000, payload, source=address, destination="224.0.1.2"
    )


def test_a_receiver_that_sent_naks_skipped_no_gap(tmp_path):
    """The NAK crosses the repair, so no frame fills the gap after it, although it was repaired."""
    plan = replace(PLANS[0], seed=11, loss=0.1, resend_loss=0.3)
    stream = LossyStream(plan)
    result = analyze([str(stream.write(tmp_path))])
    assert all(each.delivered == plan.frames for each in stream.receivers)
    assert {gap["outcome"] for gap in result.gaps.to_pylist()} <= {"repaired"}
    assert "skipped" not in "\n".join(summary_lines(result))
