"""Exercise of response channels, on which a publication answers one image."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine, require

REQUESTS, RESPONSES = 3701, 3702
LOCAL_REQUESTS, LOCAL_RESPONSES = 3703, 3704
PORT, CONTROL_PORT = PORTS["responses"]
LENGTH = 300
SOON_NS = 150 * NS_PER_MS
"""Longer than the 100 ms between two SETUPs, of which the first one has no destination yet. A
receiver need not wait for the 200 ms between status messages."""


def responses(site: Site) -> Routine[None]:
    """Send requests from two clients, and answer each of them on a channel of its own."""
    far = site.far
    endpoint = f"aeron:udp?endpoint={far.address}:{PORT}"
    requests = Reader((yield from far.subscription(endpoint, REQUESTS)))
    for count, party in enumerate((site.near, site.beside), start=1):
        control = f"aeron:udp?control-mode=response|control={far.address}:{CONTROL_PORT}"
        answers = Reader((yield from party.subscription(control, RESPONSES)))
        wanted = answers.subscription.registration_id
        asking = yield from party.publication(
            f"{endpoint}|term-length=64k|linger=0|response-correlation-id={wanted}",
            REQUESTS,
            is_exclusive=True,
        )
        image = yield from image_of(requests.subscription, count)
        answering = yield from far.publication(
            f"{control}|term-length=64k|linger=0|response-correlation-id={image.correlation_id}",
            RESPONSES,
            is_exclusive=True,
        )
        since_ns = party.now_ns()
        for each in (asking, answering):
            yield connected(each)
        yield from image_of(answers.subscription)
        took_ms = (party.now_ns() - since_ns) // NS_PER_MS
        require(took_ms * NS_PER_MS < SOON_NS, f"a response stream at once, found {took_ms} ms")
        yield from exchange(asking, [requests], 100, LENGTH, first=100 * count)
        yield from exchange(answering, [answers], 250, LENGTH, first=1_000 * count)
    yield from _local(site)


def _local(site: Site) -> Routine[None]:
    """Ask by IPC for responses to two subscriptions: each has a publication of its own."""
    near = site.near
    requests = yield from near.subscription("aeron:ipc", LOCAL_REQUESTS)
    asking = []
    for _ in range(2):
        answers = yield from near.subscription("aeron:ipc?control-mode=response", LOCAL_RESPONSES)
        channel = f"aeron:ipc?term-length=64k|response-correlation-id={answers.registration_id}"
        asking.append((yield from near.publication(channel, LOCAL_REQUESTS)))
    sessions = [each.session_id for each in asking]
    require(len(set(sessions)) == 2, f"two sessions for two response streams, found {sessions}")
    yield from image_of(requests, 2)
    requests.close()
    for publication in asking:
        publication.close()
