"""The driver of a host, by the peer's name and by the label of an image."""

import pytest

from windtunnel.harness.artifact.run.manifest import SubjectFacts


@pytest.mark.parametrize(
    ("peer", "kind", "driver", "is_aerons"),
    [
        ("ours", "", "ours", False),
        ("aeronmd:/x/aeronmd", "", "aeron-c", True),
        ("java", "", "aeron-java", True),
        ("image:example/driver:1", "aeron-c", "aeron-c", True),
        ("image:example/driver:1", "aeron-java", "aeron-java", True),
        ("image:example/driver:1", "ours", "ours", False),
        ("image:example/driver:1", "", "aeron-c", True),
    ],
)
def test_the_driver_is_derived_from_the_name_and_the_kind_of_a_peer(peer, kind, driver, is_aerons):
    facts = SubjectFacts("publisher", peer, kind=kind)
    assert (facts.driver, facts.is_aerons) == (driver, is_aerons)
