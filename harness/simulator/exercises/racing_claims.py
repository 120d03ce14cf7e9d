"""Exercise of a publisher that passes its limit, since its threads claim at the same time, and of a
reader that moves by more than a term at once.

    clean ........ (dirty) ........ spy, publisher ..... limit
      |    4 t    |                      |  5.6 t          |  at most 6 t until term 3 is clean

Each thread of a publication compares the limit with the position, and claims afterwards, so several
of them may exceed it by a message each. The exercise does that with a limit that it raises for as
long as it claims.
"""

from __future__ import annotations

from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.dissect.frames.layout import DATA_HEADER_LENGTH
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange, message
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of, limit_at
from windtunnel.harness.simulator.exercises.waiting import Routine, require

STREAM = 3121
(PORT,) = PORTS["racing-claims"]
KIB = 1_024
LENGTH = KIB - DATA_HEADER_LENGTH
TERM = 64 * KIB
WINDOW = TERM // 2
BEFORE = 3 * 64 + 62
"""Number of messages before the race, of which each fills 1 KiB: almost four terms."""
RACING = 104
"""Number of messages in the race, up to the middle of term 5. The log is still large enough."""


def racing_claims(site: Site) -> Routine[None]:
    """Pass the limit by more than a term and read at once: the log is clean up to the limit."""
    near = site.near
    channel = f"aeron:udp?endpoint={site.far.address}:{PORT}"
    publication = yield from near.publication(
        f"{channel}|term-length=64k|ssc=true|linger=0", STREAM
    )
    spy = Reader((yield from near.subscription(f"aeron-spy:{channel}", STREAM)))
    yield connected(publication)
    yield from image_of(spy.subscription)
    yield from exchange(publication, [spy], BEFORE, LENGTH)
    start = publication.position
    require(start == BEFORE * KIB, f"a position of {BEFORE} KiB, found {start}")
    limit = near.counter_of(publication, counter_key.PUBLISHER_LIMIT)
    yield limit_at(near, publication, start + WINDOW)
    near.set_value(limit, start + 2 * TERM)
    expected = [message(number, LENGTH) for number in range(RACING)]
    for each in expected:
        # The first offer after the end of a term only begins the next term.
        accepted = publication.offer(each) > 0 or publication.offer(each) > 0
        require(accepted, "a message of the race to be accepted")
    near.set_value(limit, start + WINDOW)
    position = publication.position
    for _ in range(RACING):
        spy.poll()
    require(spy.take() == expected, "the messages of the race in order")
    yield limit_at(near, publication, position + WINDOW)
    log = near.log_of(publication)
    dirty = sum(
        any(log[at % (3 * TERM) : at % (3 * TERM) + KIB])
        for at in range(position, position + WINDOW, KIB)
    )
    require(not dirty, f"a clean log between position and limit, found {dirty} KiB that are not")
    yield from exchange(publication, [spy], 2 * BEFORE, LENGTH, first=1_000)
    publication.close()
    spy.subscription.close()
