"""The number of messages in content, which is limited before any of them is planned."""

import pytest

from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.scenario.validation.traffic_validation import content_count


@pytest.mark.parametrize("length", [1, 2, 3, 1_376])
def test_the_count_is_exact_if_all_messages_have_one_length(length: int) -> None:
    for total in (1, length, length + 1, 10_000):
        assert content_count(total, length, length) == plan(1, "x", total, length, length).count


@pytest.mark.parametrize(
    ("shortest", "longest"), [(1, 2), (1, 3), (2, 5), (1, 1_376), (100, 101), (77, 8_192)]
)
def test_the_count_is_near_that_of_a_plan(shortest: int, longest: int) -> None:
    total = 20_000 * longest
    planned = plan(1, "x", total, longest, shortest).count
    assert content_count(total, shortest, longest) == pytest.approx(planned, rel=0.03)
