"""The options of a lab, as its process receives them."""

from pathlib import Path
from typing import Any

import pytest

from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.lab.lab import Lab
from windtunnel.harness.lab.options import lab_options, link_ends, scenario_name


def options(**changed: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "hosts": ["a", "b"], "link": None, "links": None, "impairments": {}, "observe": (),
        "timeouts": None, "driver": "ours", "drivers": None, "fidelity": "netns",
        "name": "lab", "about": "", "seed": 0, "out": Path("runs"), "folder": Path("."),
        "argv": ["pytest"],
    }  # fmt: skip
    return lab_options(**given | changed)


def test_all_streams_may_be_observed() -> None:
    assert options(observe="all")["observe"] == "all"
    assert options(observe=[{"stream": 1}])["observe"] == [{"id": "stream-1", "stream": 1}]


def test_two_hosts_have_a_link_by_default() -> None:
    assert options()["links"] == [{"between": ["a", "b"]}]


def test_impairments_apply_to_both_directions() -> None:
    found = options(link="a-b", impairments={"loss": "2%", "delay": None})["links"]
    assert found == [{"between": ["a", "b"], "impairments": {"both": {"loss": "2%"}}}]


def test_several_links_have_their_own_impairments() -> None:
    links = {"a-b": {"loss": "2%"}, "b-c": {}}
    found = options(hosts=["a", "b", "c"], links=links)["links"]
    assert [each["between"] for each in found] == [["a", "b"], ["b", "c"]]
    assert "impairments" not in found[1]


def test_each_host_may_have_a_driver_of_its_own() -> None:
    assert options(driver="java")["driver"] == {"a": "java", "b": "java"}
    mixed = options(driver={"b": "pyaeron"}, default_driver="java")["driver"]
    assert mixed == {"a": "java", "b": "pyaeron"}
    with pytest.raises(LabError, match="driver: expected one of the hosts a, b, found 'c'"):
        options(driver={"c": "java"})


def test_drivers_have_settings_by_host() -> None:
    settings = {"a": {"AERON_SOCKET_SO_RCVBUF": "2m"}}
    assert options(drivers=settings)["drivers"] == settings


def test_links_and_a_link_are_not_mixed() -> None:
    with pytest.raises(LabError, match="either links, or link with its impairments"):
        options(links={"a-b": {}}, impairments={"loss": "1%"})


def test_streams_get_ids() -> None:
    found = options(observe=[{"stream": 7}, {"id": "mine", "stream": 8}])["observe"]
    assert [each["id"] for each in found] == ["stream-1", "mine"]


def test_names_of_hosts_may_contain_hyphens() -> None:
    hosts = ["new-york", "london-1"]
    assert link_ends(hosts, "new-york-london-1") == hosts
    assert link_ends(hosts, ("x", "y")) == ["x", "y"]
    with pytest.raises(LabError, match="expected two of the hosts new-york, london-1"):
        link_ends(hosts, "new-york-london")
    with pytest.raises(LabError, match="expected two hosts"):
        link_ends(hosts, ("x", "y", "z"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("test_feed_survives[1-2 %]", "test-feed-survives-1-2"),
        ("a/B c/", "a/b-c"),
        ("  ", "lab"),
        ("x" * 200, "x" * 80),
    ],
)
def test_any_name_of_a_test_is_a_name_of_a_scenario(text: str, name: str) -> None:
    assert scenario_name(text) == name


def test_one_text_is_not_a_list_of_its_characters() -> None:
    with pytest.raises(LabError, match=r"hosts: expected a list such as \['ab'\], found 'ab'"):
        options(hosts="ab")


async def test_a_command_is_a_list() -> None:
    """`start("a", "true")` reported that there is no program t."""
    with pytest.raises(LabError, match=r"command: expected a list such as \['true'\], found 'tr"):
        await Lab(options()).start("a", "true")
    with pytest.raises(LabError, match=r"log_never: expected a list such as \['ERROR'\]"):
        await Lab(options()).start("a", ["true"], log_never="ERROR")
