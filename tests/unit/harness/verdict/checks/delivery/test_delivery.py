"""The delivery checks detect every wrong delivery, and report the message."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.harness.verdict.judged import judged
from tests.unit.harness.verdict.synthetic_loss import change, joined_at, let_arrive
from tests.unit.harness.verdict.synthetic_run import TERM_LENGTH, make_run, status_message
from windtunnel.harness.artifact.host.application import Part, SubscriberFacts
from windtunnel.harness.verdict.checks.delivery.delivery import delivered_intact, delivered_once
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import Missing
from windtunnel.harness.verdict.core.outcome import Outcome


def once(run):
    return delivered_once(Evidence(run.write()), run.traffic)


def intact(run):
    return delivered_intact(Evidence(run.write()), run.traffic)


@pytest.fixture
def reliable(tmp_path):
    return make_run(tmp_path)


@pytest.fixture
def unreliable(tmp_path):
    return make_run(tmp_path, reliable=False)


def long_message(run, above=16):
    """Return the index of a delivered message that is long enough to be unique."""
    return next(at for at, (_, data) in enumerate(run.messages) if at > 20 and len(data) > above)


def test_all_once_and_in_order_is_a_pass(reliable):
    finding = once(reliable)
    assert finding.outcome is Outcome.PASS
    assert f"{len(reliable.messages)} messages, 200000 bytes" in finding.text


def test_a_flipped_byte_is_reported(reliable):
    at = long_message(reliable)
    position, data = reliable.messages[at]
    reliable.messages[at] = (position, data[:9] + bytes([data[9] ^ 0x10]) + data[10:])
    finding = once(reliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert (finding.message, finding.byte_offset, finding.position) == (at, 9, position)
    assert f"message {at} (ending at position {position}) differs from byte 9 on" in finding.text


def test_a_skipped_message_is_reported(reliable):
    at = long_message(reliable)
    del reliable.messages[at]
    finding = once(reliable)
    assert (finding.outcome, finding.conclusive, finding.message) == (Outcome.FAIL, True, at)
    assert f"message {at} is missing: message {at + 1} was delivered instead" in finding.text


def test_a_message_that_is_delivered_twice_is_reported(reliable):
    at = long_message(reliable)
    reliable.messages.insert(at + 1, reliable.messages[at])
    finding = once(reliable)
    assert (finding.outcome, finding.message) == (Outcome.FAIL, at + 1)


def test_two_messages_in_the_wrong_order_are_reported(reliable):
    at = long_message(reliable)
    order = reliable.messages
    order[at], order[at + 1] = order[at + 1], order[at]
    finding = once(reliable)
    assert (finding.outcome, finding.message) == (Outcome.FAIL, at)


def test_a_message_that_is_cut_short_is_reported(reliable):
    at = long_message(reliable)
    position, data = reliable.messages[at]
    reliable.messages[at] = (position, data[:-1])
    finding = once(reliable)
    assert (finding.outcome, finding.message) == (Outcome.FAIL, at)
    assert finding.byte_offset == len(data) - 1
    assert f"expected {len(data)} bytes, found {len(data) - 1}" in finding.text


def test_an_extra_message_is_reported(reliable):
    count = len(reliable.messages)
    reliable.messages.append((reliable.messages[-1][0] + 64, b"more"))
    finding = once(reliable)
    assert (finding.outcome, finding.message, finding.conclusive) == (Outcome.FAIL, count, True)


def test_messages_that_are_merely_late_fail_but_are_excused_by_a_failed_gate(reliable):
    del reliable.messages[-5:]
    finding = once(reliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False)
    assert finding.message == len(reliable.messages)
    frames = reliable.log.frames
    first = frames[frames["message"] == finding.message][0]
    assert finding.position == first["position"]
    assert "and the 4 messages after it never arrived" in finding.text


@pytest.mark.parametrize(
    ("missing", "text"),
    [(1, ") never arrived"), (2, ") and the 1 message after it never arrived")],
)
def test_messages_after_the_first_missing_one_are_named_if_there_are_any(reliable, missing, text):
    del reliable.messages[-missing:]
    assert text in once(reliable).text


def test_no_delivery_at_all_fails(reliable):
    reliable.messages.clear()
    finding = once(reliable)
    assert (finding.outcome, finding.message) == (Outcome.FAIL, 0)


@pytest.mark.parametrize("check", [delivered_once, delivered_intact])
@pytest.mark.parametrize("name", ["index.bin", "messages.bin"])
def test_missing_deliveries_is_inconclusive(reliable, check, name):
    path = reliable.write()
    (path / f"hosts/b/subscriber-one.{name}").unlink()
    finding = judged(check, Evidence(path), reliable.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert f"subscriber-one.{name}: is missing" in finding.text


def test_an_index_with_more_bytes_than_the_messages_is_a_harness_defect(reliable):
    path = reliable.write()
    file = path / "hosts/b/subscriber-one.messages.bin"
    file.write_bytes(file.read_bytes()[:-1])
    assert isinstance(Evidence(path).delivered(reliable.traffic), Missing)
    assert judged(delivered_once, Evidence(path), reliable.traffic).outcome is Outcome.HARNESS


def test_intact_messages_of_an_unreliable_stream_are_a_pass(unreliable):
    finding = intact(unreliable)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["delivered"] == len(unreliable.messages)
    assert finding.facts["damaged_on_link"] > 10


def test_a_flipped_byte_of_an_unreliable_stream_is_reported(unreliable):
    at = long_message(unreliable)
    position, data = unreliable.messages[at]
    unreliable.messages[at] = (position, data[:3] + bytes([data[3] ^ 1]) + data[4:])
    finding = intact(unreliable)
    assert (finding.outcome, finding.conclusive, finding.byte_offset) == (Outcome.FAIL, True, 3)
    assert finding.position == position


def test_a_message_that_was_never_sent_is_reported(unreliable):
    position = unreliable.messages[30][0]
    unreliable.messages[30] = (position + 32, b"stray")
    finding = intact(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position + 32)


@pytest.mark.parametrize("earlier", [0, 7])
def test_a_message_that_is_delivered_again_is_reported(unreliable, earlier):
    unreliable.messages.insert(31, unreliable.messages[30 - earlier])
    finding = intact(unreliable)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, True)
    assert f"follows a message that ends at position {unreliable.messages[30][0]}" in finding.text


def test_a_message_of_the_wrong_length_is_reported(unreliable):
    at = long_message(unreliable)
    position, data = unreliable.messages[at]
    unreliable.messages[at] = (position, data + b"x")
    finding = intact(unreliable)
    assert (finding.outcome, finding.position) == (Outcome.FAIL, position)


def test_a_message_that_lost_no_frame_must_be_delivered(unreliable):
    position, _ = unreliable.messages.pop(40)
    finding = intact(unreliable)
    assert finding.outcome is Outcome.FAIL
    assert finding.message == unreliable.log.message_ends.tolist().index(position)
    assert "lost no frame, but was not delivered; 1 message in total" in finding.text


def test_a_message_that_an_impairment_lost_need_not_be_delivered(unreliable):
    unreliable.decisions.clear()
    finding = intact(unreliable)
    assert finding.outcome is Outcome.PASS
    assert finding.facts["damaged_on_link"] > 10


def test_a_message_that_arrived_in_order_must_be_delivered(unreliable):
    position = unreliable.decisions.pop(4)[12]
    let_arrive(unreliable, position)
    finding = intact(unreliable)
    (index,) = np.flatnonzero(unreliable.log.frames["position"] == position)
    assert finding.outcome is Outcome.FAIL
    assert finding.message == unreliable.log.frames["message"][index]


@pytest.mark.parametrize(("over", "outcome"), [(True, Outcome.PASS), (False, Outcome.FAIL)])
def test_a_message_that_ends_half_a_term_beyond_the_window_need_not_be_delivered(
    unreliable, over, outcome
):
    """An image rejects its frames, although no link lost them."""
    unreliable.packets["b"] = [
        each
        for each in unreliable.packets["b"]
        if each.kind != "SM" or each.payload == status_message(0)
    ]
    frames = unreliable.log.frames
    ends = np.append(frames["position"][1:], unreliable.log.end_position)
    is_over = ends > TERM_LENGTH // 2
    own = frames["message"][is_over == over]
    delivered = [position for position, _ in unreliable.messages]
    positions = unreliable.log.message_ends[np.unique(own[own >= 0])]
    popped = [each for each in positions.tolist() if each in delivered][0 if over else -2]
    unreliable.messages.pop(delivered.index(popped))
    assert intact(unreliable).outcome is outcome


def test_missing_decision_log_is_inconclusive(unreliable):
    path = unreliable.write()
    (path / "decisions.bin").unlink()
    finding = judged(delivered_intact, Evidence(path), unreliable.traffic)
    assert finding.outcome is Outcome.INCONCLUSIVE


def test_a_subscriber_connected_first_may_not_join_late(unreliable):
    finding = delivered_intact(joined_at(unreliable, 20), unreliable.traffic)
    assert (finding.outcome, finding.conclusive) == (Outcome.FAIL, False)
    assert "connected before the publisher started" in finding.text


def test_a_subscriber_of_the_next_image_may_join_late(unreliable):
    evidence = joined_at(unreliable, 20)
    change(unreliable, rejoins=True)
    assert delivered_intact(evidence, unreliable.traffic).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("reads_until", "outcome"), [(10, Outcome.PASS), (11, Outcome.FAIL), (None, Outcome.FAIL)]
)
def test_messages_between_two_images_need_not_be_delivered(unreliable, reads_until, outcome):
    change(unreliable, rejoins=True)
    log = unreliable.log
    starts = [int(log.frames["position"][log.frames["message"] == each][0]) for each in (10, 15)]
    missing = [each for each in unreliable.messages if starts[0] < each[0] <= starts[1]]
    unreliable.messages = [each for each in unreliable.messages if each not in missing]
    unreliable.frames = [each for each in unreliable.frames if not starts[0] <= each[0] < starts[1]]
    unreliable.seen_ns.clear()
    path = unreliable.write()
    document = unreliable.folder.host("b").subscriber(unreliable.traffic.id).document
    facts = SubscriberFacts.read(document)
    join, end, session = facts.join_position, facts.end_position, facts.session_id
    left = starts[0] if reads_until == 10 else int(log.message_ends[10])
    parts = [
        Part(session, join, left, False, 1, 2),
        Part(session, starts[1], end, True, 3, 4),
    ]
    if reads_until is None:
        parts = [Part(session, join, end, True, 1, 4)]
    replace(facts, parts=parts, join_position=parts[-1].join_position).write(document)
    assert delivered_intact(Evidence(path), unreliable.traffic).outcome is outcome
