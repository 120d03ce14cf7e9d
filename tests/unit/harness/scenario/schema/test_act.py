"""Conditions on the values of an act."""

import pytest
from pydantic import ValidationError

from windtunnel.harness.scenario.schema.act import Act


def test_truncation_leaves_at_least_a_byte():
    with pytest.raises(ValidationError, match="expected at least 1B, found 0B") as raised:
        Act.model_validate({"truncate": {"share": "1%", "to": "0B"}})
    assert [each["loc"] for each in raised.value.errors()] == [("truncate", "to")]


def test_truncation_may_leave_one_byte():
    act = Act.model_validate({"truncate": {"share": "1%", "to": "1B"}})
    assert act.truncate.to == 1
