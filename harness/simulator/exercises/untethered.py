"""Exercise of an untethered subscription, which does not block its stream, and rejoins."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require

STREAM, ONCE_STREAM = 3601, 3602
(PORT,) = PORTS["untethered"]
LENGTH = 1_000
COUNT = 150
"""Number of messages: more than twice the receiver window, and two terms."""
TIMEOUTS = (
    "untethered-window-limit-timeout=100ms|untethered-linger-timeout=100ms|"
    "untethered-resting-timeout=200ms"
)


def untethered(site: Site) -> Routine[None]:
    """Let an untethered subscription stop reading: it loses its image, the other one goes on
    reading, and after a rest it joins again.
    """
    near, far = site.near, site.far
    channel = f"aeron:udp?endpoint={far.address}:{PORT}"
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", STREAM)
    receive = f"{channel}|rcv-wnd=16k|tether=false|{TIMEOUTS}"
    reading = Reader((yield from far.subscription(receive, STREAM)))
    resting = Reader((yield from far.subscription(receive, STREAM)))
    yield connected(publication)
    yield from image_of(reading.subscription)
    first = yield from image_of(resting.subscription)
    yield from exchange(publication, [reading, resting], COUNT, LENGTH)
    yield from exchange(publication, [reading], COUNT, LENGTH, first=1_000)
    yield Wait(
        lambda: first.is_closed or first not in resting.subscription.images,
        "an untethered subscription that does not read to lose its image",
    )
    second = yield from image_of(resting.subscription)
    require(
        second.join_position > first.join_position,
        f"to join again behind {first.join_position}, found {second.join_position}",
    )
    require(reading.subscription.images, "the image of the other subscription to remain")
    yield from exchange(publication, [reading, resting], COUNT, LENGTH, first=2_000)
    publication.close()
    for each in (reading, resting):
        each.subscription.close()
    yield from _once(site, channel)


def _once(site: Site, channel: str) -> Routine[None]:
    """Let an untethered subscription without rejoin stop reading: it does not come back."""
    near, far = site.near, site.far
    publication = yield from near.publication(f"{channel}|term-length=64k|linger=0", ONCE_STREAM)
    receive = f"{channel}|rcv-wnd=16k|tether=false|rejoin=false|{TIMEOUTS}"
    reading = Reader((yield from far.subscription(receive, ONCE_STREAM)))
    resting = Reader((yield from far.subscription(receive, ONCE_STREAM)))
    yield connected(publication)
    yield from image_of(resting.subscription)
    yield from image_of(reading.subscription)
    yield from exchange(publication, [reading], COUNT, LENGTH)
    yield Wait(
        lambda: not resting.subscription.images,
        "an untethered subscription that does not read to lose its image",
    )
    yield far.pause(3_000 * NS_PER_MS)
    require(not resting.subscription.images, "no image again without rejoin")
    yield from exchange(publication, [reading], COUNT, LENGTH, first=1_000)
    publication.close()
    for each in (reading, resting):
        each.subscription.close()
