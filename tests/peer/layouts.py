"""The channels of each kind of stream between two drivers, directly or across links.

    unicast       publication -> endpoint
    mdc-dynamic   publication at a control address  <- status messages of each receiver
    mdc-manual    publication -> each destination that its client adds
    multicast     publication -> group; feedback goes to the next group

Across a link, the publication's side sends only to the near end, the receiver's side to the far
one. Each of several endpoints has its own link, with its own losses; the receivers of a group share
one. A group has receivers in both drivers, so that both send NAKs and get retransmits.
"""

from dataclasses import dataclass, field

from tests.peer.bad_link import LOOPBACK, BadLink, link_case, multicast_end, unicast_end
from tests.peer.ports import free_port, free_ports

STREAM_ID, TERM_LENGTH = 1001, 65_536
STREAM = f"term-length={TERM_LENGTH}|init-term-id=-2|term-id=-2|term-offset=0"
WINDOW = "rcv-wnd=16k"
"""Less than half a term by more than a pad: the pad at the end of a term, of which only the header
is sent, cannot cause an over-run, so frames are lost only by a link."""
GROUP_RECEIVERS = 2
GROUPS = [f"224.20.30.{last}" for last in (41, 42, 43, 44)]
"""Data and control groups of the near side, then of the far side; feedback goes to control."""


@dataclass
class Layout:
    """Channels of both sides, and the links between them if there are any."""

    publication: str
    subscriptions: list[str]
    links: list[BadLink]
    destinations: list[str] = field(default_factory=list)
    home_subscriptions: list[str] = field(default_factory=list)
    """Subscriptions in the publication's own driver."""

    def close(self):
        for link in self.links:
            link.close()


def layout_of(kind, faults=None, seed=0):
    """Return the layout of a kind; without `faults`, the drivers are connected directly."""
    return _KINDS[kind](_Links(faults, seed))


class _Links:
    """Creates links, each with its own seed; none if there are no faults."""

    def __init__(self, faults, seed):
        self._faults, self._seed = faults, seed
        self.created = []

    @property
    def are_wanted(self):
        return self._faults is not None

    def between(self, near, far):
        case = link_case(STREAM_ID, TERM_LENGTH, self._faults, self._seed + len(self.created))
        self.created.append(BadLink(near, far, case))


def _unicast(links):
    port = free_port()
    far = near = f"{LOOPBACK}:{port}"
    if links.are_wanted:
        end = unicast_end()
        links.between(end, unicast_end((LOOPBACK, port)))
        near = end.address
    return Layout(
        f"aeron:udp?endpoint={near}|{STREAM}",
        [f"aeron:udp?endpoint={far}|{WINDOW}"],
        links.created,
    )


def _dynamic(links):
    control, *ports = free_ports(1 + GROUP_RECEIVERS)
    controls = [f"{LOOPBACK}:{control}"] * len(ports)
    if links.are_wanted:
        ends = [unicast_end((LOOPBACK, port)) for port in ports]
        for end in ends:
            links.between(unicast_end((LOOPBACK, control)), end)
        controls = [end.address for end in ends]
    return Layout(
        f"aeron:udp?control={LOOPBACK}:{control}|control-mode=dynamic|{_flow_control()}|{STREAM}",
        [
            f"aeron:udp?endpoint={LOOPBACK}:{port}|control={where}|{WINDOW}"
            for port, where in zip(ports, controls, strict=True)
        ],
        links.created,
    )


def _manual(links):
    ports = free_ports(GROUP_RECEIVERS)
    nears = [f"{LOOPBACK}:{port}" for port in ports]
    if links.are_wanted:
        ends = [unicast_end() for _ in ports]
        for end, port in zip(ends, ports, strict=True):
            links.between(end, unicast_end((LOOPBACK, port)))
        nears = [end.address for end in ends]
    return Layout(
        f"aeron:udp?control-mode=manual|{_flow_control()}|{STREAM}",
        [f"aeron:udp?endpoint={LOOPBACK}:{port}|{WINDOW}" for port in ports],
        links.created,
        [f"aeron:udp?endpoint={near}" for near in nears],
    )


def _multicast(links):
    near_port, far_port = free_ports(2)
    data, control, far_data, far_control = GROUPS
    near = far = f"endpoint={data}:{near_port}"
    if links.are_wanted:
        links.between(
            multicast_end((data, near_port), (control, near_port)),
            multicast_end((far_control, far_port), (far_data, far_port)),
        )
        far = f"endpoint={far_data}:{far_port}"
    receiving = f"aeron:udp?{far}|interface={LOOPBACK}|{WINDOW}"
    return Layout(
        f"aeron:udp?{near}|interface={LOOPBACK}|{_flow_control()}|{STREAM}",
        [receiving],
        links.created,
        home_subscriptions=[receiving],
    )


def _flow_control():
    return f"fc=min,g:/{GROUP_RECEIVERS},t:5s"


_KINDS = {
    "unicast": _unicast,
    "mdc-dynamic": _dynamic,
    "mdc-manual": _manual,
    "multicast": _multicast,
}
KINDS = tuple(_KINDS)
