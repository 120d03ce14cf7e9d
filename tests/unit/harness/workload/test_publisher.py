"""The publisher follows the plan, counts back pressure, and stops on an error."""

import signal

import numpy as np
import pytest

from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.artifact.run.plan import MessagePlan
from windtunnel.harness.workload.publisher import Publisher
from windtunnel.harness.workload.publisher_facts import ADMIN_ACTIONS_MAX
from windtunnel.harness.workload.stop import GaveUp, Stop, Stopped, SubjectError

PAYLOAD = np.arange(10, dtype=np.uint8)
PLAN = MessagePlan(lengths=np.array([4, 4, 25, 1]), starts=np.array([0, 4, 8, 33]))
EXPECTED = [
    bytes([0, 1, 2, 3]),
    bytes([4, 5, 6, 7]),
    bytes([8, 9, *range(10), *range(10), 0, 1, 2]),
    bytes([3]),
]


class ScriptedPublication:
    """A publication that returns the scripted codes first, then accepts everything."""

    close_reason = ""

    def __init__(self, *codes):
        self.codes, self.taken, self.position = list(codes), [], 0

    def offer(self, message, offset, length):
        if self.codes:
            return self.codes.pop(0)
        assert 0 <= offset <= offset + length <= message.size
        self.taken.append(message[offset : offset + length].tobytes())
        self.position += 64
        return self.position


def make(skip=-1, stop=None):
    return Publisher(PLAN, PAYLOAD, skip, stop or Stop())


def test_each_message_has_the_payloads_bytes_at_its_position():
    publisher, publication = make(), ScriptedPublication()
    publisher.send(publication)
    assert publication.taken == EXPECTED
    assert publisher.offers.tolist() == [
        (0, 4, 0, 64), (1, 4, 0, 128), (2, 25, 0, 192), (3, 1, 0, 256)
    ]  # fmt: skip
    assert publisher.progress.count_bytes == PLAN.total_bytes


def test_a_message_inside_the_payload_is_offered_without_a_copy(monkeypatch):
    seen = []
    publication = ScriptedPublication()
    monkeypatch.setattr(
        publication, "offer", lambda message, at, length: seen.append(message is PAYLOAD) or 64
    )
    make().send(publication)
    assert seen == [True, True, False, True]


def test_a_skipped_message_leaves_the_others_as_they_are():
    publisher, publication = make(skip=1), ScriptedPublication()
    publisher.send(publication)
    assert publication.taken == [EXPECTED[0], *EXPECTED[2:]]
    assert publisher.offers["message_index"].tolist() == [0, 2, 3]


def test_refused_offers_are_counted_and_repeated():
    codes = [result.BACK_PRESSURED, result.ADMIN_ACTION, result.BACK_PRESSURED]
    publisher, publication = make(), ScriptedPublication(*codes)
    publisher.send(publication)
    assert (publisher.back_pressure_count, publisher.admin_action_count) == (2, 1)
    assert publication.taken == EXPECTED


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (result.NOT_CONNECTED, "NOT_CONNECTED"),
        (result.CLOSED, "CLOSED"),
        (result.MAX_POSITION_EXCEEDED, "MAX_POSITION_EXCEEDED"),
        (result.ERROR, "ERROR"),
        (0, "0"),
    ],
)
def test_any_other_result_is_the_subjects_failure(code, name):
    publisher = make()
    with pytest.raises(SubjectError, match=f"found {name}$") as failure:
        publisher.send(ScriptedPublication(code))
    assert (failure.type is GaveUp) == (code == result.NOT_CONNECTED)
    assert publisher.accepted_count == 0


@pytest.mark.parametrize("code", [result.BACK_PRESSURED, result.ADMIN_ACTION])
def test_a_request_to_end_is_handled_while_offers_are_refused(code):
    stop = Stop()
    publication = ScriptedPublication(*[code] * 5)
    publication_offer = publication.offer

    def offer(*message):
        if len(publication.codes) == 3:
            stop.request(signal.SIGTERM)
        return publication_offer(*message)

    publication.offer = offer
    with pytest.raises(Stopped, match="SIGTERM"):
        make(stop=stop).send(publication)
    assert publication.taken == []


def test_endless_admin_actions_are_the_subjects_failure():
    publisher = make()
    codes = [result.ADMIN_ACTION] * (ADMIN_ACTIONS_MAX + 1)
    with pytest.raises(SubjectError, match=r"ADMIN_ACTION 10001 times in a row \(limit 10000\)"):
        publisher.send(ScriptedPublication(*codes))
    patient, between = make(), [*codes[1:], 64, *codes[1:]]
    patient.send(ScriptedPublication(*between))
    assert patient.admin_action_count == 2 * ADMIN_ACTIONS_MAX
