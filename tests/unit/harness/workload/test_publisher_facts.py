"""The error of an offer that a publication refused names its result."""

import pytest

from windtunnel.driver.logbuffer import publication_result as result
from windtunnel.harness.workload.publisher_facts import refusal
from windtunnel.harness.workload.stop import GaveUp, SubjectError

OFFER = "offer of message 7 (200 bytes): expected a position, found "


@pytest.mark.parametrize(
    ("code", "reason", "kind", "text"),
    [
        (result.NOT_CONNECTED, "", GaveUp, "NOT_CONNECTED"),
        (result.CLOSED, "by its driver", SubjectError, "CLOSED: by its driver"),
        (result.MAX_POSITION_EXCEEDED, "", SubjectError, "MAX_POSITION_EXCEEDED"),
        (-77, "", SubjectError, "-77"),
    ],
)
def test_a_refused_offer_names_its_result(code, reason, kind, text):
    error = refusal(7, 200, code, reason)
    assert type(error) is kind
    assert str(error) == OFFER + text
