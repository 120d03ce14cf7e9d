"""The same hosts twice on virtual time: once with the C driver, once with ours."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations, permutations
from pathlib import Path

from pydantic import Field

from tests.peer.random_commands.channels import GROUPS, Places
from tests.peer.random_commands.drivers import DriverUnderTest
from tests.peer.random_commands.names import ID_MIN, Names
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.logbuffer import descriptor
from windtunnel.harness.scenario.resolved.case import Case, HostCase, Payload
from windtunnel.harness.scenario.resolved.impairment_case import impairment_case
from windtunnel.harness.scenario.resolved.link_case import LinkCase
from windtunnel.harness.scenario.schema.host_event import TimeoutsCase
from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.world import SimulatedWorld, open_world

ADDRESSES = {"a": "10.64.0.3", "b": "10.64.0.19", "c": "10.64.0.35"}
KINDS = ("real", "ours")
IDS_PER_HOST = 1_000_000_000
MS = 1_000_000
CLIENT_LIVENESS_NS = 2_000 * MS
UNBLOCK_NS = 3_000 * MS
IMAGE_LIVENESS_NS = 2_000 * MS


class Settings(TimeoutsCase):
    """Settings of the drivers, with short times."""

    others: dict[str, str] = Field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        return super().variables | self.others | {
            "AERON_TERM_BUFFER_LENGTH": "64k", "AERON_IPC_TERM_BUFFER_LENGTH": "64k",
            "AERON_TIMER_INTERVAL": "100ms", "AERON_PUBLICATION_CONNECTION_TIMEOUT": "1s",
            "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
            "AERON_RCV_STATUS_MESSAGE_TIMEOUT": "100ms",
            "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "100ms",
        }  # fmt: skip


class SimulatedDriver(DriverUnderTest):
    """The driver of a simulated host."""

    unlike_metadata = (descriptor.PAGE_SIZE,)

    def __init__(
        self, kind: str, host: Host, names: Names, id_min: int, uncounted: tuple[str, ...]
    ) -> None:
        super().__init__(kind, host.directory, names, id_min)
        self.uncounted = uncounted
        self.attach(open_existing(host.directory, writable=True))


class Worlds:
    """The hosts in both worlds, on the same virtual time."""

    def __init__(self, worlds: list[SimulatedWorld]) -> None:
        self._worlds = worlds
        # Which one of a dying publication's SETUPs is lost decides whether it still has an image.
        is_impaired = bool(worlds[0].case.impairments)
        self._uncounted = ("AvailableImage", "UnavailableImage") if is_impaired else ()
        self._names = [Names() for _ in worlds]

    def drivers(self, index: int) -> list[SimulatedDriver]:
        """Return the drivers of a host, in the order of KINDS."""
        return [
            SimulatedDriver(
                kind, world.hosts[index], names, ID_MIN + index * IDS_PER_HOST, self._uncounted
            )
            for kind, world, names in zip(KINDS, self._worlds, self._names, strict=True)
        ]  # fmt: skip

    def advance(self, length_ns: int) -> None:
        """Let time pass in both worlds."""
        for world in self._worlds:
            end_ns = world.now_ns + length_ns
            while world.now_ns < end_ns:
                world.advance(end_ns)

    def pause(self, index: int) -> None:
        for world in self._worlds:
            world.hosts[index].pause_driver()

    def resume(self, index: int) -> None:
        for world in self._worlds:
            world.hosts[index].resume_driver()


def places(index: int) -> Places:
    """Return the addresses that channels of a host have."""
    addresses = list(ADDRESSES.values())
    own = addresses.pop(index)
    return Places(
        peers=(*(f"{each}:{port}" for each in addresses for port in (20_010, 20_020)), *GROUPS),
        own=(f"{own}:20010", f"{own}:20020", f"{own}:0", *GROUPS),
        controls=(f"{own}:20110", f"{own}:20120"),
        peer_controls=tuple(f"{each}:{port}" for each in addresses for port in (20_110, 20_120)),
        response=f"{own}:20210",
        interfaces=(own, "10.64.0.0/24", "10.99.0.1"),
        congestion_controls=("static",),  # Windows of the other one depend on times of losses.
    )


@contextmanager
def open_worlds(
    folder: Path, seed: int, settings: dict[str, str], impairments: dict[str, str]
) -> Iterator[Worlds]:
    """Start the drivers of both worlds. All links have the impairments."""
    names, links = tuple(ADDRESSES), tuple(combinations(ADDRESSES, 2))
    directions = [f"{one}->{other}" for one, other in permutations(ADDRESSES, 2)]
    impaired = Impairments.model_validate(impairments)
    case = Case(
        name="random commands", about="", seed=seed, fidelity="sim",
        hosts=tuple(HostCase(name=name, address=each) for name, each in ADDRESSES.items()),
        payload=Payload(path="", sha256="", length_bytes=0), traffic=(), faults=(), expect=(),
        wall_ns=10**9, links=tuple(LinkCase(between=each) for each in links),
        impairments=tuple(impairment_case(each, impaired) for each in directions if impairments),
        timeouts=Settings(
            image_liveness_ns=IMAGE_LIVENESS_NS, client_liveness_ns=CLIENT_LIVENESS_NS,
            publication_unblock_ns=UNBLOCK_NS, others=settings,
        ),
    )  # fmt: skip
    with ExitStack() as closing:
        worlds = []
        for kind in KINDS:
            (folder / kind).mkdir()
            real = names if kind == "real" else ()
            worlds.append(closing.enter_context(open_world(case, folder / kind, real=real)))
        yield Worlds(worlds)
