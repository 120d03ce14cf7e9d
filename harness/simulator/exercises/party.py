"""The clients of an exercise, and what they were notified of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.client.subscription import Subscription
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_reader import Counter
from windtunnel.driver.command.response import PublicationError
from windtunnel.harness.dissect.driver_files import counter_key
from windtunnel.harness.simulator.exercises.waiting import Routine, Wait
from windtunnel.harness.simulator.world.host import Host, HostClient
from windtunnel.harness.simulator.world.host_socket import HostSocket

UNBLOCK_NS = 15_000_000_000
"""Default unblock timeout. Source: Aeron 1.53, aeron.publication.unblock.timeout."""


class Party:
    """A client on a host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.address = host.address
        self.rejections: list[PublicationError] = []
        """Error frames that receivers sent to publications of this client."""
        self.counters_added: list[int] = []
        self.counters_removed: list[int] = []
        """Registration ids of counters that the client was notified of."""
        self.on_image: Callable[[Image], None] = lambda image: None
        """Called for each new image of the client's subscriptions, as soon as it is notified."""
        self._host_client: HostClient = host.connect(
            publication_error_handler=self.rejections.append,
            on_available_image=lambda image: self.on_image(image),
            on_available_counter=lambda _, registration_id, __: self.counters_added.append(
                registration_id
            ),
            on_unavailable_counter=lambda _, registration_id, __: self.counters_removed.append(
                registration_id
            ),
        )
        self.client: Aeron = self._host_client.client

    @property
    def errors(self) -> list[Exception]:
        """Errors that the driver or the clients on the host reported."""
        return self._host.errors

    @property
    def unblock_ns(self) -> int:
        """The time after which the driver unblocks a publication."""
        return self._host.timeouts.publication_unblock_ns or UNBLOCK_NS

    def now_ns(self) -> int:
        """Return the virtual time."""
        return self._host.now_ns()

    def pause(self, duration_ns: int) -> Wait:
        """Return the condition that some time has passed."""
        until_ns = self.now_ns() + duration_ns
        return Wait(lambda: self.now_ns() >= until_ns, "time to pass")

    def log_names(self) -> set[str]:
        """Return the names of the driver's log buffers, which are registration ids."""
        return {each.stem for each in self._host.directory.rglob("*.logbuffer")}

    def socket(self, port: int) -> HostSocket:
        """Open a UDP socket at a port of the host, next to those of its driver."""
        return self._host.open_socket(port)

    def die(self) -> None:
        """Stop the client without closing it, as if its process had been killed."""
        self._host.drop_client(self._host_client)

    def publication(
        self, channel: str, stream_id: int, *, is_exclusive: bool = False
    ) -> Routine[Publication]:
        """Add a publication and wait for it."""
        client = self.client
        if is_exclusive:
            wanted = client.async_add_exclusive_publication(channel, stream_id)
            found = yield Wait(lambda: client.get_exclusive_publication(wanted), _named(channel))
        else:
            wanted = client.async_add_publication(channel, stream_id)
            found = yield Wait(lambda: client.get_publication(wanted), _named(channel))
        publication: Publication = found
        return publication

    def subscription(self, channel: str, stream_id: int) -> Routine[Subscription]:
        """Add a subscription and wait for it."""
        wanted = self.client.async_add_subscription(channel, stream_id)
        found = yield Wait(lambda: self.client.get_subscription(wanted), _named(channel))
        subscription: Subscription = found
        return subscription

    def answered(self, correlation_id: int) -> Routine[None]:
        """Wait until the driver has responded to a command."""
        yield Wait(
            lambda: not self.client.is_command_active(correlation_id),
            "the driver to respond to a command",
        )

    def counter(self, counter_id: int) -> Counter | None:
        """Return a counter of the driver, or None if it is not allocated."""
        return self.client.counters.read(counter_id)

    def value(self, counter_id: int) -> int:
        """Return the value of a system counter."""
        return int(self.client.counters.value(counter_id))

    def set_value(self, counter_id: int, value: int) -> None:
        """Write the value of a counter, which the driver shares with its clients."""
        counters.set_release(self.client.counters.values, counter_id, value)

    def log_of(self, publication: Publication) -> bytes:
        """Return the bytes of a publication's log buffer."""
        name = f"{publication.registration_id}.logbuffer"
        return (self._host.directory / "publications" / name).read_bytes()

    def counter_of(self, publication: Publication, type_id: int) -> int:
        """Return the id of a publication's only counter of a type."""
        (found,) = [
            each.counter_id
            for each in self.of_type(type_id)
            if each.registration_id == publication.registration_id
        ]
        return found

    def of_type(self, type_id: int) -> list[Counter]:
        """Return the counters of a type, oldest first."""
        found = [each for each in self.client.counters if each.type_id == type_id]
        return sorted(found, key=lambda each: each.registration_id)


@dataclass(frozen=True)
class Site:
    """The clients that an exercise uses."""

    near: Party
    beside: Party
    "Another client on the host of `near`."
    far: Party
    "A client on another host."


def image_of(subscription: Subscription, count: int = 1) -> Routine[Image]:
    """Wait until a subscription has a number of images. Returns the latest of them."""
    yield Wait(
        lambda: subscription.image_count == count,
        f"{count} images of stream {subscription.stream_id} at {subscription.channel}",
        lambda: subscription.image_count,
    )
    image: Image = subscription.images[-1]
    return image


def connected(publication: Publication) -> Wait:
    """Return the condition that a publication is connected."""
    return Wait(lambda: publication.is_connected, f"a connection of {publication.channel}")


def disconnected(publication: Publication) -> Wait:
    """Return the condition that a publication has no connection."""
    return Wait(
        lambda: not publication.is_connected, f"the end of a connection of {publication.channel}"
    )


def limit_at(party: Party, publication: Publication, position: int) -> Wait:
    """Return the condition that the limit of a party's publication is at a position."""
    limit = party.counter_of(publication, counter_key.PUBLISHER_LIMIT)
    return Wait(
        lambda: party.value(limit) == position,
        f"the limit of {publication.channel} at {position}",
        lambda: party.value(limit),
    )


def _named(channel: str) -> str:
    return f"the driver to accept {channel}"
