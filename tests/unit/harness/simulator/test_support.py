"""Features that the simulator lacks are rejected before a run starts."""

import pytest

from windtunnel.harness.scenario.resolved.case import Case, HostCase, TrafficCase
from windtunnel.harness.scenario.resolved.link_case import LinkCase
from windtunnel.harness.scenario.schema.archive import ArchiveCase
from windtunnel.harness.simulator.support import Unsupported, require_supported


def case(*, address="10.0.0.1", backend="relay", **channels):
    given = {"channel": "aeron:udp?endpoint=10.0.0.2:1", "receive": "", **channels}
    return Case.model_construct(
        hosts=tuple(
            HostCase(name=name, address=each)
            for name, each in (("a", address), ("b", "10.0.0.2"), ("c", "10.0.0.3"))
        ),
        links=(LinkCase(between=("a", "b")), LinkCase(between=("a", "c"), backend=backend)),
        traffic=(TrafficCase.model_construct(id="x", **given),),
    )


def test_several_hosts_with_the_relays_impairments_are_supported():
    require_supported(case())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"address": "fd00::1"}, "only IPv4: host a has fd00::1"),
        ({"backend": "netem"}, "cannot apply the impairments of a->c with netem"),
        ({"receive": "aeron:udp?media-rcv-ts-offset=reserved"}, "support media-rcv-ts-offset"),
        ({"channels": (("a", "x|channel-snd-ts-offset=8"),)}, "channel-snd-ts-offset"),
        ({"sources": (("b", "x|channel-rcv-ts-offset=8"),)}, "channel-rcv-ts-offset"),
        ({"destinations": ("x|channel-snd-ts-offset=8",)}, "channel-snd-ts-offset"),
    ],
)  # fmt: skip
def test_an_unsupported_feature_is_named(given, why):
    with pytest.raises(Unsupported, match=why):
        require_supported(case(**given))


def test_an_archive_is_supported_unless_its_disk_has_a_limited_size():
    archive = ArchiveCase(host="b", segment_bytes=1)
    require_supported(case().model_copy(update={"archives": (archive,)}))
    small = archive.model_copy(update={"disk_bytes": 1})
    with pytest.raises(Unsupported, match="the archive of b needs --fidelity netns"):
        require_supported(case().model_copy(update={"archives": (small,)}))
