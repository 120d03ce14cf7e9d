"""Injects deliberate faults into a simulated run, to test that the judge detects them.

    skip-message, flip-byte   applied by the publisher and by the subscriber
    lying-counter             adds to rcv-naks-sent among the driver's counters
    nak-when-unreliable       sends one NAK for the running session, from the stream's own port

The faults have the same names as in workloads. A fault applies to the case's first stream, once
its image exists. The judge must detect it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windtunnel.driver.channel.socket_address import SocketAddress, port_of, write_name
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.cnc import counters
from windtunnel.driver.media import link
from windtunnel.harness.dissect.driver_files.counter_key import RECEIVER_NAKS_SENT
from windtunnel.harness.simulator.applications.subscriber import Subscriber
from windtunnel.harness.simulator.world.host import Host
from windtunnel.harness.simulator.world.world import SimulatedWorld
from windtunnel.harness.workload.options import (
    FLIP_BYTE,
    LYING_COUNTER,
    NAK_WHEN_UNRELIABLE,
    SABOTAGES,
    SKIP_MESSAGE,
)
from windtunnel.harness.workload.saboteur import INCREMENT, nak_of

NAMES = tuple(name for names in SABOTAGES.values() for name in names)

DRIVER_SABOTAGES = (LYING_COUNTER, NAK_WHEN_UNRELIABLE)
"""The faults that are injected into the driver instead of the workload."""


class Sabotage:
    """The deliberate fault to inject into a simulated run, if any."""

    def __init__(self, name: str) -> None:
        if name and name not in NAMES:
            raise ValueError(f"--sabotage {name}: expected one of {', '.join(NAMES)}")
        self._name = name
        self._is_done = False

    @property
    def skips_message(self) -> bool:
        """Return whether the fault makes publishers skip a message."""
        return self._name == SKIP_MESSAGE

    @property
    def flips_byte(self) -> bool:
        """Return whether the fault makes subscribers corrupt a message."""
        return self._name == FLIP_BYTE

    def step(self, world: SimulatedWorld, subscribers: Sequence[Subscriber]) -> None:
        """Inject the fault as soon as the first stream has an image and has delivered a message."""
        if self._is_done or self._name not in DRIVER_SABOTAGES or not subscribers:
            return
        victim = subscribers[0]
        images = victim.subscriptions[0].images if victim.subscriptions else ()
        if not images or victim.count_bytes == 0:
            return
        host = world.host(victim.traffic.to_host)
        if self._name == LYING_COUNTER:
            _falsify_counter(host)
        else:
            _send_nak(host, victim, images[0])
        self._is_done = True

    def require_done(self) -> None:
        """Raise RuntimeError if the fault was never injected. The judge cannot detect a fault that
        did not happen.
        """
        if self._name in DRIVER_SABOTAGES and not self._is_done:
            raise RuntimeError(f"sabotage {self._name} was not applied: no image appeared")


def _falsify_counter(host: Host) -> None:
    for counter in host.client.counters:
        if counter.type_id == RECEIVER_NAKS_SENT:
            counters.add(host.counter_values, counter.counter_id, INCREMENT)
            return


def _send_nak(host: Host, victim: Subscriber, image: Image) -> None:
    frame = np.frombuffer(nak_of(image, victim.traffic.stream_id), dtype=np.uint8)
    address, _, port = image.source_identity.rpartition(":")
    destination = np.zeros(28, dtype=np.uint8)
    length = write_name(destination, SocketAddress(address, int(port)))
    links = host.agents.links
    # Match by port alone: on a joined group, the mailbox is bound to the group's address.
    at_port = [port_of(each["local"]) == victim.traffic.port for each in links.mailboxes]
    open_boxes = np.flatnonzero(np.array(at_port) & (links.mailboxes["is_open"] != 0))
    assert open_boxes.size, f"no open mailbox at port {victim.traffic.port}"
    link.put_outbound(links, int(open_boxes[0]), destination, length, frame, 0, frame.size)
