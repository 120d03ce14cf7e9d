"""Exercise of a client that dies between a claim and its commit.

    log      | before | claim, never committed | after |
    readers            ^ stop here, until the driver replaces the claim with padding

A shared publication, which another client still uses, is unblocked when its consumer has made no
progress for the unblock timeout, and an exclusive one when its client has timed out.
"""

from __future__ import annotations

from windtunnel.driver.client.publication.publication import Publication
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, message
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

IPC = "aeron:ipc?term-length=64k"
IPC_STREAM, EXCLUSIVE_STREAM, UDP_STREAM = 3141, 3142, 3143
(PORT,) = PORTS["abandoned-claims"]
UNBLOCKED_PUBLICATIONS = 19
"""Type of the system counter. Source: Aeron 1.53."""
LENGTH, CLAIM_LENGTH = 300, 1_000
BEFORE, AFTER = 3, 5
EARLY_NS = 500_000_000
"""Time before the timeout at which the claims must still block."""


def abandoned_claims(site: Site) -> Routine[None]:
    """Claim on a shared IPC, a shared UDP and an exclusive IPC publication, and die: the claims
    block, and are replaced with padding in time.
    """
    near, heir = site.near, site.beside
    unblocked = heir.value(UNBLOCKED_PUBLICATIONS)
    udp = f"aeron:udp?endpoint={site.far.address}:{PORT}"
    shared = [(IPC, IPC_STREAM), (f"{udp}|term-length=64k", UDP_STREAM)]
    readers = [
        Reader((yield from heir.subscription("aeron:ipc", IPC_STREAM))),
        Reader((yield from site.far.subscription(udp, UDP_STREAM))),
    ]
    heirs: list[Publication] = []
    for (channel, stream_id), reader in zip(shared, readers, strict=True):
        dying = yield from near.publication(channel, stream_id)
        heirs.append((yield from heir.publication(channel, stream_id)))
        yield from _claim(dying, reader)
    exclusive = Reader((yield from heir.subscription("aeron:ipc", EXCLUSIVE_STREAM)))
    dying = yield from near.publication(IPC, EXCLUSIVE_STREAM, is_exclusive=True)
    yield from _claim(dying, exclusive)
    near.die()
    began_ns = heir.now_ns()
    expected = [message(number, LENGTH) for number in range(AFTER)]
    for publication in heirs:
        for each in expected:
            require(publication.offer(each) > 0, "a message behind the claim to be accepted")
    yield heir.pause(began_ns + heir.unblock_ns - EARLY_NS - heir.now_ns())
    found = sum(each.poll() for each in readers)
    require(not found, f"claims that block for {heir.unblock_ns} ns, found {found} messages")
    yield Wait(
        lambda: exclusive.poll() or not exclusive.subscription.images,
        "the end of the exclusive publication of a client that died",
    )
    require(not exclusive.take(), "no message of a claim that was never committed")
    for reader in readers:
        stream = f"stream {reader.subscription.stream_id}"
        yield Wait(
            lambda reader=reader: reader.poll() >= AFTER,  # type: ignore[misc]
            f"the messages behind a claim of {stream} whose client died",
        )
        require(reader.take() == expected, f"the messages behind the claim of {stream} in order")
    found = heir.value(UNBLOCKED_PUBLICATIONS) - unblocked
    require(found == 3, f"3 unblocked publications, found {found}")
    for publication, reader in zip(heirs, readers, strict=True):
        yield from exchange(publication, [reader], BEFORE, LENGTH, first=50)
        publication.close()
        reader.subscription.close()
    exclusive.subscription.close()


def _claim(publication: Publication, reader: Reader) -> Routine[None]:
    """Publish some messages, and claim without a commit."""
    yield connected(publication)
    yield from image_of(reader.subscription)
    yield from exchange(publication, [reader], BEFORE, LENGTH)
    claim = publication.try_claim(CLAIM_LENGTH)
    require(not isinstance(claim, int), f"a claim of {CLAIM_LENGTH} bytes, found {claim}")
