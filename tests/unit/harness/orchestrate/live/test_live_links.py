"""How the state of links follows the calls of a program."""

import pytest

from tests.unit.harness.middlebox.synthetic_case import case
from windtunnel.harness.orchestrate.live.live_links import LiveLinks, with_all_directions
from windtunnel.harness.orchestrate.live.live_scenario import OptionError
from windtunnel.harness.scenario.schema.units import BILLION

LINKS = [{"between": ["a", "b"], "impairments": {"both": {"delay": "5ms"}}}]
A_TO_B = ("a", "b")


@pytest.fixture
def links() -> LiveLinks:
    return LiveLinks(case(), LINKS)


def test_an_impairment_is_added_to_the_others_and_removed_with_none(links: LiveLinks) -> None:
    (first,) = links.impair([A_TO_B], {"loss": "10%"})
    assert (first.link, first.delay_ns) == ("a->b", 5_000_000)
    assert first.loss is not None
    assert first.loss.shares_ppb == (BILLION // 10,)
    (second,) = links.impair([A_TO_B], {"loss": None, "delay": None})
    assert (second.loss, second.delay_ns) == (None, 0)
    assert [each["impairments"] for each in links.as_document()] == [{}, {"delay": "5ms"}]


def test_a_partition_loses_everything_and_leaves_what_was_before(links: LiveLinks) -> None:
    both = links.directions("a", "b")
    links.impair(both, {"loss": "1%"})
    for each in links.partition(both):
        assert each.loss is not None
        assert each.loss.shares_ppb == (BILLION,)
    # A change during a partition is in force after it.
    (still,) = links.impair([A_TO_B], {"delay": "7ms"})
    assert still.loss is not None
    assert still.loss.shares_ppb == (BILLION,)
    back, other = links.reconnect(both)
    assert (back.delay_ns, other.delay_ns) == (7_000_000, 5_000_000)
    assert back.loss is not None
    assert back.loss.shares_ppb == (BILLION // 100,)


def test_healing_returns_to_the_beginning(links: LiveLinks) -> None:
    both = links.directions("b", "a")
    links.impair(both, {"loss": "1%", "delay": "1ms"})
    links.partition(both)
    assert [(each.loss, each.delay_ns) for each in links.heal(both)] == [(None, 5_000_000)] * 2


def test_a_wrong_change_changes_nothing(links: LiveLinks) -> None:
    with pytest.raises(OptionError, match="loss"):
        links.impair(links.directions("a", "b"), {"loss": "lots"})
    assert [each["impairments"] for each in links.as_document()] == [{"delay": "5ms"}] * 2


def test_directions_lead_to_a_host_of_the_link(links: LiveLinks) -> None:
    assert links.directions("b", "a", "b") == [A_TO_B]
    with pytest.raises(OptionError, match="to: expected a or b, found 'c'"):
        links.directions("a", "b", "c")
    with pytest.raises(OptionError, match="there is no link a-c: the links are a-b"):
        links.directions("a", "c")


def test_in_a_live_case_every_direction_can_change() -> None:
    found = with_all_directions(case())
    assert found.live
    assert [each.link for each in found.impairments] == ["a->b", "b->a"]
