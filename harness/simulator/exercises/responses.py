"""Exercise of response channels, on which a publication answers one image."""

from __future__ import annotations

from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.waiting import Routine

REQUESTS, RESPONSES = 3701, 3702
PORT, CONTROL_PORT = PORTS["responses"]
LENGTH = 300


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
        for each in (asking, answering):
            yield connected(each)
        yield from image_of(answers.subscription)
        yield from exchange(asking, [requests], 100, LENGTH, first=100 * count)
        yield from exchange(answering, [answers], 250, LENGTH, first=1_000 * count)
