"""The transfer of a stream from one driver to another, with its counters.

One thread does everything outside the drivers: it offers, runs the links and reads. The retry delay
of NAKs is long, so that nearly every NAK is caused by a new loss.
"""

import time
from contextlib import ExitStack, contextmanager

from tests.peer.bad_link import TO_NEAR
from tests.peer.driver_facts import DriverFacts
from tests.peer.impairments import MTU
from tests.peer.layouts import layout_of
from tests.peer.processes import real_driver_process
from tests.peer.streams import MESSAGES, OurClient, RealClient, until
from windtunnel.driver.media_driver.context import SHARED, from_environment
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.dissect.driver_files import counter_key as counter

NAK_DELAY_NS, NAK_DELAYS_A_RETRY = 500_000, 100
NAK_BACKOFF_NS = 40_000_000
SETTINGS = {
    "AERON_MTU_LENGTH": str(MTU),
    "AERON_NAK_UNICAST_DELAY": f"{NAK_DELAY_NS}ns",
    "AERON_NAK_UNICAST_RETRY_DELAY_RATIO": str(NAK_DELAYS_A_RETRY),
    "AERON_NAK_MULTICAST_MAX_BACKOFF": f"{NAK_BACKOFF_NS}ns",
}
"""Of both drivers."""
ENDS = {"ours": OurClient, "real": RealClient}


@contextmanager
def _our_driver(folder):
    context = from_environment(
        SETTINGS, dir=folder / "ours", threading_mode=SHARED, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us",
    )  # fmt: skip
    with MediaDriver(context):
        yield context.dir


@contextmanager
def _real_driver(folder):
    with real_driver_process(folder / "real", **SETTINGS):
        yield folder / "real"


_DRIVERS = {"ours": _our_driver, "real": _real_driver}


@contextmanager
def start_transfer(folder, kind, drivers, clients, faults=None, seed=0):
    """Send all messages from the first of two drivers to the second, each used by its client."""
    with ExitStack() as stack:
        near, far = (stack.enter_context(_DRIVERS[each](folder)) for each in drivers)
        # The real client's Python API has no destinations.
        writing = "ours" if kind == "mdc-manual" else clients[0]
        ends = ENDS[writing](near), ENDS[clients[1]](far)
        for end in ends:
            stack.callback(end.close)
        layout = layout_of(kind, faults, seed)
        stack.callback(layout.close)
        made = Transfer(layout, ends, DriverFacts(near), DriverFacts(far))
        made.connect()
        made.send_all()
        yield made


class Transfer:
    """A stream with its readers and links."""

    def __init__(self, layout, ends, near, far):
        self.layout, self.near, self.far = layout, near, far
        self.sides = near, far
        self._writer, reading = ends
        self.readers = [
            end.subscribe(channel)
            for end, channels in (
                (reading, layout.subscriptions),
                (self._writer, layout.home_subscriptions),
            )
            for channel in channels
        ]
        self.publication = self._writer.publish(layout.publication, is_exclusive=True)
        for destination in layout.destinations:
            self.publication.add_destination(destination)
        self.elapsed_ns = 0

    def _until(self, condition, what):
        until(lambda: self._turn() or condition(), what)

    def _turn(self):
        for link in self.layout.links:
            link.turn()
        for reader in self.readers:
            reader.poll()

    def connect(self):
        """Wait until every reader has an image, so that none joins late."""
        self._until(
            lambda: (
                self._writer.is_connected(self.publication)
                and all(reader.has_image for reader in self.readers)
            ),
            "connecting",
        )

    def send_all(self):
        """Send all messages. Wait until all are read and every counter has its final value."""
        started_ns = time.monotonic_ns()
        for message in MESSAGES:
            self._until(lambda message=message: self.publication.offer(message) > 0, "offering")
        self._until(
            lambda: all(len(reader.messages) >= len(MESSAGES) for reader in self.readers),
            "delivery",
        )
        self._until(lambda: set(self.positions()) == {self.publication.position}, "positions")
        self.elapsed_ns = time.monotonic_ns() - started_ns
        self._until(
            self._is_quiet, "the last NAK to be received, and the last frame to be forwarded"
        )

    def positions(self):
        """Return the positions of the sender, each image and each subscriber."""
        found = self.near.values(counter.SENDER_POSITION)
        assert len(found) == 1
        for kind in (
            counter.RECEIVER_HWM, counter.RECEIVER_POSITION, counter.SUBSCRIBER_POSITION,
        ):  # fmt: skip
            values = self.near.values(kind) + self.far.values(kind)
            assert len(values) == len(self.readers)
            found += values
        return found + [reader.position for reader in self.readers]

    def _is_quiet(self):
        """Whether every NAK has been received or dropped, once no gap is left."""
        sent, received = self.naks_sent(), self.naks_received()
        if not self.layout.links:
            return sent == received
        entered = self._naks_on_links("frames_in")
        passed = self._naks_on_links("frames_out")
        return (
            (sent, received) == (entered, passed)
            and entered == passed + self._naks_on_links("dropped")
            and all(link.is_empty for link in self.layout.links)
        )

    def naks_sent(self):
        """Return the number of NAKs sent by all receivers."""
        return sum(side.total(counter.NAKS_SENT_TOTAL) for side in self.sides)

    def naks_received(self):
        """Return the number of NAKs received by the sender."""
        return self.near.total(counter.NAKS_RECEIVED_TOTAL)

    def _naks_on_links(self, column):
        return sum(link.frames(TO_NEAR, "NAK")[column] for link in self.layout.links)
