"""What a simulated world lacks is told before anything begins."""

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


def test_several_hosts_with_the_relays_weather_are_supported():
    require_supported(case())


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"address": "fd00::1"}, "IPv4 hosts only; a is fd00::1"),
        ({"backend": "netem"}, "no netem that could deliver weather on a->c"),
        ({"receive": "aeron:udp?media-rcv-ts-offset=reserved"}, "no media-rcv-ts-offset"),
        ({"channels": (("a", "x|channel-snd-ts-offset=8"),)}, "channel-snd-ts-offset"),
        ({"sources": (("b", "x|channel-rcv-ts-offset=8"),)}, "channel-rcv-ts-offset"),
        ({"destinations": ("x|channel-snd-ts-offset=8",)}, "channel-snd-ts-offset"),
    ],
)  # fmt: skip
def test_anything_else_is_named(given, why):
    with pytest.raises(Unsupported, match=why):
        require_supported(case(**given))


def test_an_archive_is_named_and_so_is_where_to_have_one():
    recorded = case().model_copy(update={"archives": (ArchiveCase(host="b", segment_bytes=1),)})
    with pytest.raises(Unsupported, match="host b has an archive: use --fidelity netns"):
        require_supported(recorded)
