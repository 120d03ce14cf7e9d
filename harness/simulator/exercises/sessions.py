"""Exercise of session ids: chosen ones, subscriptions to one of them, and one that returns."""

from __future__ import annotations

from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import (
    Party,
    Site,
    connected,
    disconnected,
    image_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require
from windtunnel.harness.workload.stop import SubjectError

STREAM = 3501
(PORT,) = PORTS["sessions"]
LENGTH = 800
SESSIONS = (-7, 1_000_007)


def sessions(site: Site) -> Routine[None]:
    """Publish two sessions of a stream to subscriptions to all of them, one, or the other."""
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    every = Reader((yield from far.subscription(channel, STREAM)))
    single = []
    for session in SESSIONS:
        added = yield from far.subscription(f"{channel}|session-id={session}", STREAM)
        single.append(Reader(added))
    publications = []
    for session in SESSIONS:
        publications.append((yield from _publish(near, channel, session)))
    yield from image_of(every.subscription, 2)
    for publication, reader, session in zip(publications, single, SESSIONS, strict=True):
        yield from image_of(reader.subscription)
        require(publication.session_id == session, f"session {session}")
        yield connected(publication)
        yield from exchange(publication, [every, reader], 100, LENGTH)
    yield from _refuse(near, channel, SESSIONS[0])
    single[0].subscription.close()
    yield from exchange(publications[0], [every], 50, LENGTH, first=300)
    every.subscription.close()
    yield disconnected(publications[0])
    yield from exchange(publications[1], single[1:], 50, LENGTH, first=500)
    for each in publications:
        each.close()
    # A session id is in use until its publication has been freed.
    yield from _refuse(near, channel, SESSIONS[1])
    yield Wait(
        lambda: not single[1].subscription.images, "the image of a closed publication to end"
    )
    returned = yield from _publish_again(near, channel, SESSIONS[1])
    image = yield from image_of(single[1].subscription)
    require(image.session_id == SESSIONS[1], "the session that returns")
    yield connected(returned)
    yield from exchange(returned, single[1:], 50, LENGTH, first=700)
    returned.close()
    single[1].subscription.close()


def _full(channel: str, session: int) -> str:
    return f"{channel}|session-id={session}|term-length=64k|linger=0"


def _publish(near: Party, channel: str, session: int) -> Routine[Publication]:
    publication = yield from near.publication(_full(channel, session), STREAM, is_exclusive=True)
    return publication


def _publish_again(near: Party, channel: str, session: int) -> Routine[Publication]:
    """Add a publication with a session id as soon as the driver has freed the last one."""
    full, client = _full(channel, session), near.client
    wanted = client.async_add_exclusive_publication(full, STREAM)

    def found() -> Publication | None:
        nonlocal wanted
        try:
            return client.get_exclusive_publication(wanted)
        except RegistrationError:
            wanted = client.async_add_exclusive_publication(full, STREAM)
            return None

    publication: Publication = yield Wait(found, f"session id {session} to be free again")
    return publication


def _refuse(near: Party, channel: str, session: int) -> Routine[None]:
    """Add an exclusive publication with a session id that is in use."""
    client = near.client
    wanted = client.async_add_exclusive_publication(_full(channel, session), STREAM)
    refused: list[str] = []

    def is_answered() -> bool:
        try:
            return client.get_exclusive_publication(wanted) is not None
        except RegistrationError as error:
            refused.append(str(error))
            return True

    yield Wait(is_answered, "the driver to answer a command")
    if not refused:
        raise SubjectError(f"expected session id {session}, which is in use, to be refused")
