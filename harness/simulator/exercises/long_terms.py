"""Exercise of the longest terms, whose positions exceed 31 bits and whose ids wrap around."""

from __future__ import annotations

from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Site, connected, disconnected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, require

STREAM = 3121
(PORT,) = PORTS["long-terms"]
TERM_LENGTH = 1 << 30
BEFORE_END = 1 << 16
START = 2 * TERM_LENGTH - BEFORE_END
"""Position shortly before the end of the second term, whose id is the lowest one."""
POSITIONS = f"init-term-id=2147483647|term-id=-2147483648|term-offset={TERM_LENGTH - BEFORE_END}"
COUNT, LENGTH = 40, 20_000


def long_terms(site: Site) -> Routine[None]:
    """Publish past the end of a term of 1 GiB, over a network and over IPC.

    The logs are sparse, because they would not fit into memory otherwise.
    """
    near, far = site.near, site.far
    remote = f"aeron:udp?endpoint={far.address}:{PORT}|sparse=true"
    for channel, reading in ((remote, far), ("aeron:ipc?sparse=true", near)):
        reader = Reader((yield from reading.subscription(channel, STREAM)))
        publication = yield from near.publication(
            f"{channel}|term-length=1g|{POSITIONS}|linger=0", STREAM, is_exclusive=True
        )
        yield connected(publication)
        image = yield from image_of(reader.subscription)
        require(image.join_position == START, f"to join at {START}, found {image.join_position}")
        yield from exchange(publication, [reader], COUNT, LENGTH)
        end = publication.position
        require(end > START + COUNT * LENGTH > 1 << 31, f"a position beyond 2 GiB, found {end}")
        require(image.position == end, f"to read to {end}, found {image.position}")
        reader.subscription.close()
        yield disconnected(publication)
        publication.close()
