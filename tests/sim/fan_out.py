"""One stream to several receivers: each destination of the sender has an independent link.

                      +====(its own losses)=====> receiver 0 -> subscriber
    publisher -> sender
                      +====(its own losses)=====> receiver 1 -> subscriber

Consists of stream pairs: the first one provides sender and receiver, the others only receivers.
only.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.sim.stream_pair import MS, SLOT, SND_POS, SUB_POS, TO_RECEIVER, TO_SENDER, StreamPair
from windtunnel.driver.channel.socket_address import SocketAddress, write_name
from windtunnel.driver.cnc import counters
from windtunnel.driver.media import link
from windtunnel.driver.media_driver.conductor.endpoints.send_channel_endpoints import name_words
from windtunnel.driver.media_driver.sender import (
    flow_control,
    network_publication,
    sender_state,
)

FIRST_PORT = 20_002
Impair = Callable[[int, int, np.ndarray], list[np.ndarray]]


def deliver_all(listener: int, direction: int, datagram: np.ndarray) -> list[np.ndarray]:
    """Deliver each datagram on every link, without impairments."""
    return [datagram]


class FanOut:
    """The sender and its receivers; `turn()` steps all of them once."""

    def __init__(
        self,
        folder: Path,
        mode: int,
        *,
        strategy: int = flow_control.MAX,
        impair: Impair = deliver_all,
        poll_every: tuple[int, ...] = (1, 1),
        **settings: int,
    ) -> None:
        self.impair, self.poll_every, self.turns = impair, poll_every, 0
        self.listeners = []
        for number in range(len(poll_every)):
            (folder / str(number)).mkdir(parents=True)
            self.listeners.append(StreamPair(folder / str(number), **settings))
        self.source = self.listeners[0]
        self.names = []
        for number, pair in enumerate(self.listeners):
            box, name = pair.links.mailboxes[1], np.zeros(28, np.uint8)
            box.local_length = write_name(name, self.address(number))
            box.local[:] = name
            self.names.append(name)
            pair.receiver.endpoints[0]["receiver_id"] = 100 + number
        self.sender = self.source.sender
        self._make_group(mode, strategy)

    def _make_group(self, mode: int, strategy: int) -> None:
        self.source.links.mailboxes[0].peer_length = 0
        self.sender.endpoints[0]["destinations_mode"] = mode
        record, flow = self.sender.publications[SLOT], self.sender.flows[SLOT]
        record["route"], record["is_group"] = network_publication.TO_DESTINATIONS, 1
        record["max_resend"], record["setup_flags"] = 16, network_publication.SETUP_GROUP
        flow["strategy"], flow["receiver_timeout_ns"] = strategy, 5_000 * MS

    @staticmethod
    def address(listener: int) -> SocketAddress:
        return SocketAddress("10.0.0.1", FIRST_PORT + listener)

    def add_destination(self, listener: int) -> None:
        """Add a receiver as a destination of the sender."""
        length, words = name_words(self.address(listener))
        self.source.send_command(
            self.sender.commands, sender_state.ADD_DESTINATION, 0, listener, length, *words
        )

    def request_setup(self, listener: int) -> None:
        """Have a receiver request a SETUP, as one with an explicit control address does."""
        request = bytes((36, 0, 0, 0, 0, 0x80, 3, 0)) + bytes(20)
        request += (100 + listener).to_bytes(8, "little")
        self._deliver(self.source, 0, self.names[listener], np.frombuffer(request, np.uint8).copy())

    def _deliver(self, pair: StreamPair, box: int, source: np.ndarray, buf: np.ndarray) -> None:
        link.deliver(pair.links, box, source, 16, buf, 0, buf.size)

    def turn(self) -> None:
        """Step sender, links, receivers, links; then advance the clock."""
        now_ns = self.source.now_ns
        for pair in self.listeners:
            pair._on_events()
            pair.track(pair.conductor, now_ns, now_ns // MS)
        self.source.send(self.sender, now_ns)
        for destination, datagram in self._take_outbound(self.source, 0):
            for number, name in enumerate(self.names):
                if name.tobytes() == destination:
                    for item in self.impair(number, TO_RECEIVER, datagram):
                        self._deliver(self.listeners[number], 1, self.source.names[0], item)
        for number, pair in enumerate(self.listeners):
            pair.receive(pair.receiver, now_ns)
            for _, datagram in self._take_outbound(pair, 1):
                for item in self.impair(number, TO_SENDER, datagram):
                    self._deliver(self.source, 0, self.names[number], item)
            if self.turns % self.poll_every[number] == 0:
                pair.poll()
        self.turns += 1
        self.source.now_ns += self.source.turn_ns

    def _take_outbound(self, pair: StreamPair, box: int) -> list[tuple[bytes, np.ndarray]]:
        name, buf, found = np.zeros(28, np.uint8), np.zeros(65_536, np.uint8), []
        while True:
            length, _ = link.take(pair.links, box, name, buf, 0, buf.size)
            if length == link.NOTHING:
                return found
            found.append((name.tobytes(), buf[:length].copy()))

    def publish(self, messages: list[bytes], turns_max: int = 20_000) -> None:
        """Offer all messages until every receiver has read them."""
        pending = list(reversed(messages))
        for _ in range(turns_max):
            while pending and self.source.offer(pending[-1]) > 0:
                pending.pop()
            self.turn()
            produced = self.source.log.producer_position()
            if not pending and all(pair.value(SUB_POS) == produced for pair in self.listeners):
                return
        positions = [pair.value(SUB_POS) for pair in self.listeners]
        raise AssertionError(f"not done after {turns_max} turns: {len(pending)} left, {positions}")

    @property
    def sender_position(self) -> int:
        return int(counters.get(self.source.values, SND_POS))
