"""Exercises of response channels, on which a publication answers one image."""

from __future__ import annotations

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.scenario.exercises import PORTS
from windtunnel.harness.simulator.exercises.messages import Reader, exchange
from windtunnel.harness.simulator.exercises.party import Site, connected, image_of
from windtunnel.harness.simulator.exercises.scripted.frames import (
    ScriptedReceiver,
    received,
    value_of,
)
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait, require
from windtunnel.harness.simulator.world.host_socket import HostSocket

REQUESTS, RESPONSES = 3701, 3702
LOCAL_REQUESTS, LOCAL_RESPONSES = 3703, 3704
PORT, CONTROL_PORT = PORTS["responses"]
SCRIPTED_PORT, SCRIPTED_CONTROL_PORT = PORTS["scripted-responder"]
SESSION = 301
WINDOW = 32_768
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


def scripted_responder(site: Site) -> Routine[None]:
    """Announce a response stream twice to a client that has not received its SETUP: each time, the
    client's driver elicits it.
    """
    near, far = site.near, site.far
    sockets = [far.socket(port) for port in PORTS["scripted-responder"]]
    responder, control = ScriptedReceiver(sockets[0]), sockets[1]
    answers = yield from near.subscription(
        f"aeron:udp?control-mode=response|control={far.address}:{SCRIPTED_CONTROL_PORT}", RESPONSES
    )
    asking = yield from near.publication(
        f"aeron:udp?endpoint={far.address}:{SCRIPTED_PORT}|term-length=64k|linger=0"
        f"|response-correlation-id={answers.registration_id}",
        REQUESTS,
        is_exclusive=True,
    )
    yield Wait(responder.poll, "a SETUP of a request stream")
    asks = responder.setup_value("flags") & layout.SETUP_FLAG_SEND_RESPONSE
    require(asks, "a request stream with the flag for responses")
    responder.status(0, WINDOW)
    yield connected(asking)
    _elicitations(control)
    for count in range(2):
        responder.response_setup(SESSION)
        yield far.pause(SOON_NS)
        found = _elicitations(control)
        require(found, f"the driver to elicit the SETUP of a response stream, time {count + 1}")
    asking.close()
    answers.close()
    for each in sockets:
        each.close()


def _elicitations(control: HostSocket) -> int:
    """Return how many status messages have elicited the SETUP of the response stream."""
    return sum(
        bool(value_of(each, layout.SM, "flags") & layout.SM_FLAG_SEND_SETUP)
        and value_of(each, layout.SM, "session_id") == SESSION
        for each, _ in received(control)
    )
