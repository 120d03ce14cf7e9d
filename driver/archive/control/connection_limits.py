"""Limits the number of control sessions that one client or host can establish at the same time.

    connect request --> WAITING, at most WAITING_MAX --> INIT ... --> established
                          `-> refused                    at most ESTABLISHING_MAX

Each session costs the driver a publication and a counter, and a session whose client does not
receive responses keeps them until the connect timeout. A client is identified by its request
publication. The limits per host apply to all request publications from one address, whatever their
port, or from one IPv6 network of 64 bits, because each of its hosts may use all of its addresses.
Local clients over IPC have no limit per host, because they are all on one host.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from ipaddress import IPv6Address

from windtunnel.driver.archive.control.control_session import ControlSession, State
from windtunnel.driver.archive.control.request_rejected import RequestRejected
from windtunnel.driver.client.image.header import SourceImage

ESTABLISHING_MAX = 16
"""The maximum number of sessions per request publication that are being established. Clients
usually open one session per publication."""
WAITING_MAX = 64
"""The maximum number of sessions per request publication that wait to be established."""
ESTABLISHING_OF_HOST_MAX = 128
WAITING_OF_HOST_MAX = 1_024
_IPC = "aeron:ipc"
_ESTABLISHED = (State.AUTHENTICATED, State.ACTIVE, State.DONE)


@lru_cache(maxsize=4_096)
def host_of(source_identity: str) -> str:
    """Return the IPv4 address or the IPv6 network in a source identity."""
    if source_identity == _IPC:
        return source_identity
    host = source_identity.rpartition(":")[0]
    if not host.startswith("["):
        return host
    text, _, scope = host.strip("[]").partition("%")
    try:
        address = IPv6Address(text)
    except ValueError:
        # Another driver may write addresses in another way.
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64%{scope}"


def require_room(sessions: Iterable[ControlSession], image: SourceImage) -> None:
    """Raise RequestRejected if a client or its host has too many sessions that are not yet
    established.
    """
    host = host_of(image.source_identity)
    pending = [each for each in sessions if each.state not in _ESTABLISHED]
    of_client = sum(each.image is image for each in pending)
    if of_client >= ESTABLISHING_MAX + WAITING_MAX:
        raise RequestRejected(
            f"this request publication already has {of_client} sessions that are not established: "
            f"expected fewer than {ESTABLISHING_MAX + WAITING_MAX}"
        )
    of_host = sum(host_of(each.image.source_identity) == host for each in pending)
    if host != _IPC and of_host >= ESTABLISHING_OF_HOST_MAX + WAITING_OF_HOST_MAX:
        raise RequestRejected(
            f"this host already has {of_host} sessions that are not established: "
            f"expected fewer than {ESTABLISHING_OF_HOST_MAX + WAITING_OF_HOST_MAX}"
        )


def next_sessions(sessions: Collection[ControlSession]) -> list[ControlSession]:
    """Return the waiting control sessions that the limits allow to be established now.

    The earliest session of each client comes before any client's second session.
    """
    waiting = [each for each in sessions if each.state == State.WAITING]
    if not waiting:
        return []
    clients: Counter[int] = Counter()
    hosts: Counter[str] = Counter()
    for each in sessions:
        if each.state != State.WAITING and each.state not in _ESTABLISHED:
            clients[id(each.image)] += 1
            hosts[host_of(each.image.source_identity)] += 1
    places: Counter[int] = Counter(clients)
    ranked = []
    for index, each in enumerate(waiting):
        ranked.append((places[id(each.image)], index, each))
        places[id(each.image)] += 1
    found = []
    for place, _, each in sorted(ranked):
        host = host_of(each.image.source_identity)
        if place < ESTABLISHING_MAX and (host == _IPC or hosts[host] < ESTABLISHING_OF_HOST_MAX):
            hosts[host] += 1
            found.append(each)
    return found
