"""Random operations of clients, each on all drivers at once."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.peer.random_commands.channels import LOOPBACK, MALFORMED, Channels, Places
from tests.peer.random_commands.drivers import DriverUnderTest
from windtunnel.driver.command.client import ClientClose
from windtunnel.driver.command.codec import Command
from windtunnel.driver.command.counter import AddCounter, AddStaticCounter, RemoveCounter
from windtunnel.driver.command.destination import (
    AddDestination,
    AddReceiveDestination,
    RemoveDestination,
    RemoveDestinationById,
    RemoveReceiveDestination,
)
from windtunnel.driver.command.image import AvailableImage, RejectImage
from windtunnel.driver.command.publication import (
    AddExclusivePublication,
    AddPublication,
    GetNextAvailableSessionId,
    PublicationReady,
    RemovePublication,
)
from windtunnel.driver.command.subscription import AddSubscription, RemoveSubscription
from windtunnel.driver.logbuffer import appender

CLIENTS_MAX = 4
STREAM_IDS = (1, 1, 1, 2, -7)
RECEIVER_POSITION, PUBLISHER_POSITION = 5, 12
Removal = type[RemovePublication] | type[RemoveSubscription] | type[RemoveCounter]
NAMELESS_ID = 424_242
"""An id that no command has."""


class Operations:
    """Draws operations of the clients on one host."""

    def __init__(
        self,
        random: Random,
        drivers: Sequence[DriverUnderTest],
        places: Places = LOOPBACK,
        peers: Sequence["Operations"] = (),
    ) -> None:
        """`peers` are those on the other hosts so far, with drivers in the same order."""
        self._random, self._drivers = random, drivers
        self._places, self._channels = places, Channels(random, places)
        self._peers = list(peers)
        for peer in peers:
            peer._peers.append(self)
        self._numbers = peers[0]._numbers if peers else itertools.count(1)
        self.done: list[str] = peers[0].done if peers else []
        """What was done, for the message of a test."""
        self._awaited = ""
        """The last command, to which the drivers must respond."""
        self.clients: list[str] = []
        self._publications: dict[str, tuple[str, str]] = {}
        """The client and the channel of each publication that has not been removed."""
        self._subscriptions: dict[str, tuple[str, str]] = {}
        self._counters: dict[str, str] = {}
        self._destinations: dict[str, tuple[str, str, str]] = {}
        """The publication or subscription, its client, and the channel of each destination."""
        self._removed: list[str] = []
        """Publications, subscriptions and counters that clients have removed."""
        self._reasons: dict[str, str] = {}
        """The reason for the rejection of each image that was rejected."""
        self._kinds: list[tuple[int, Callable[[], None]]] = [
            *((14, self._add_publication), (14, self._add_subscription), (10, self._add_both)),
            *((8, self._remove_publication), (8, self._remove_subscription), (14, self._publish)),
            *((10, self._consume), (12, self._add_destination), (5, self._remove_destination)),
            *((3, self._add_counter), (2, self._add_static_counter), (2, self._remove_counter)),
            *((2, self._close_client), (3, self._reject_image), (2, self._next_session_id)),
            *((3, self._add_malformed), (3, self._remove_what_is_removed)),
        ]

    def next(self) -> None:
        """Do one operation on all drivers."""
        if not self.clients or self._random.random() < 0.02 * (CLIENTS_MAX - len(self.clients)):
            client = self._new_name("client")
            self.clients.append(client)
            self._on_all(f"{client} connects", lambda driver: driver.new_id(client))
            self._add_subscription()  # A client exists from its first command on.
            return
        weights = [weight for weight, _ in self._kinds]
        _, operation = self._random.choices(self._kinds, weights)[0]
        operation()

    def _add_publication(self, channel: str | None = None) -> None:
        channel = self._channels.publication() if channel is None else channel
        kind = self._random.choice((AddPublication, AddExclusivePublication))
        stream_id, client = self._random.choice(STREAM_IDS), self._random.choice(self.clients)
        name = self._command(
            "publication", client, f"{kind.__name__} {channel[:200]} {stream_id}",
            lambda client_id, own_id, _: kind(client_id, own_id, stream_id, channel),
        )  # fmt: skip
        self._publications[name] = client, channel

    def _add_subscription(self, channel: str | None = None) -> None:
        channel = self._channels.subscription() if channel is None else channel
        stream_id, client = self._random.choice(STREAM_IDS), self._random.choice(self.clients)
        name = self._command(
            "subscription", client, f"AddSubscription {channel[:200]} {stream_id}",
            lambda client_id, own_id, _: AddSubscription(client_id, own_id, stream_id, channel),
        )  # fmt: skip
        self._subscriptions[name] = client, channel

    def _add_both(self) -> None:
        reader = self._random.choice((self, *self._peers))
        publication, subscription = self._channels.fitting(reader._places)
        if self._random.random() < 0.3:
            subscription += "|tether=false" if "?" in subscription else "?tether=false"
        self._add_publication(publication)
        if reader.clients:
            reader._add_subscription(subscription)

    def _add_malformed(self) -> None:
        add = self._random.choice((self._add_publication, self._add_subscription))
        add(self._random.choice(MALFORMED))

    def _remove_publication(self) -> None:
        if name := self._one_of(self._publications):
            is_revoked = self._random.random() < 0.2
            client, _ = self._publications[name]
            self._remove(RemovePublication, self._publications, name, client, is_revoked)

    def _remove_subscription(self) -> None:
        if name := self._one_of(self._subscriptions):
            client, _ = self._subscriptions[name]
            self._remove(RemoveSubscription, self._subscriptions, name, client)

    def _remove_counter(self) -> None:
        if name := self._one_of(self._counters):
            self._remove(RemoveCounter, self._counters, name, self._counters[name])

    def _remove_what_is_removed(self) -> None:
        """Remove what has been removed, what never was, or what belongs to another client."""
        others = [*self._removed, *self._publications, *self._subscriptions, *self._counters]
        name = self._random.choice((self._one_of(others), ""))
        kind, owned = self._random.choice(
            (
                (RemovePublication, self._publications),
                (RemoveSubscription, self._subscriptions),
                (RemoveCounter, self._counters),
            )
        )
        self._remove(kind, owned, name, self._random.choice(self.clients))

    def _remove(
        self, kind: Removal, owned: dict[str, Any], name: str, client: str, *options: bool
    ) -> None:
        """Let a client remove what has a name, or what no command has added."""
        if name in owned and client in (owned[name], owned[name][0]):
            del owned[name]
            self._removed.append(name)
        self._command(
            "removal", client, f"{kind.__name__} {name or NAMELESS_ID} {options}",
            lambda client_id, own_id, driver: kind(
                client_id, own_id, driver.names.number(name) if name else NAMELESS_ID, *options
            ),
        )  # fmt: skip

    def _publish(self) -> None:
        name = self._one_of(self._ready_publications())
        if not name:
            return
        limit, results = self._limit(name), []
        count = self._random.choice((1, 3, 20, 60))
        length = self._random.choice((0, 8, 100, 1_000, 3_000))

        def publish(driver: DriverUnderTest) -> None:
            log, rows = driver.log_of(name)
            arguments = (rows, log, limit, np.full(3_000, 7, np.uint8), 0, length, 0)
            offered = [int(appender.offer(*arguments)) for _ in range(count)]
            results.append([result for result in offered if result > 0])

        self._on_all(f"{count} messages of {length} bytes to {name}", publish)
        assert all(each == results[0] for each in results), f"positions: {results}"

    def _ready_publications(self) -> list[str]:
        known = self._drivers[0].publications
        return [each for each in self._publications if each in known]

    def _limit(self, publication: str) -> int:
        """Return the least position limit: one driver may notice a connection later than another
        one.
        """
        return min(driver.limit(publication) for driver in self._drivers)

    def _consume(self) -> None:
        """Let each subscription consume all that its images have."""
        self._on_all("all consume", lambda driver: consume(driver, self._images(driver)))

    @property
    def is_answered(self) -> bool:
        """Return whether all drivers have responded to the last command."""
        last = self._awaited
        return not last or all(last in driver.answered for driver in self._drivers)

    def is_ending(self, index: int) -> bool:
        """Consume the images of removed publications that the driver with an index has, and return
        whether one of them or of the publications still exists.

        How long they do depends on time, and so does what a command finds that names the same
        channel.
        """
        all_hosts = (self, *self._peers)
        removed = {ready.session_id for each in all_hosts for ready in each._ended(index)}
        in_use = {ready.session_id for each in all_hosts for ready in each._in_use(index)}
        driver = self._drivers[index]
        images = [each for each in self._images(driver) if each.session_id in removed]
        consume(driver, images)
        ending = {each.session_id for each in images} - in_use
        gone = self._ended(index)
        return bool(ending) or any(Path(ready.log_file_name).exists() for ready in gone)

    def _in_use(self, index: int) -> list[PublicationReady]:
        known = self._drivers[index].publications
        return [known[name] for name in self._publications if name in known]

    def _ended(self, index: int) -> list[PublicationReady]:
        """Return the removed publications whose logs no other publication shares."""
        logs = {ready.registration_id for ready in self._in_use(index)}
        known = self._drivers[index].publications.values()
        return [ready for ready in known if ready.registration_id not in logs]

    def _images(self, driver: DriverUnderTest) -> list[AvailableImage]:
        """Return the images of the subscriptions that have not been removed."""
        name_of = driver.names.of
        images = driver.images.values()
        return [
            image
            for image in images
            if name_of(image.subscription_registration_id) in self._subscriptions
        ]

    def _add_destination(self) -> None:
        sends = self._random.random() < 0.5
        owners = self._publications if sends else self._subscriptions
        manual = [name for name, (_, channel) in owners.items() if "=manual" in channel]
        owner = self._one_of(manual or owners)
        if owner:
            client, channel = owners[owner][0], self._channels.destination(sends=sends)
            kind = AddDestination if sends else AddReceiveDestination
            name = self._command(
                "destination", client, f"{kind.__name__} {owner} {channel}",
                lambda client_id, own_id, driver: kind(
                    client_id, own_id, driver.owner_of_destinations(owner), channel
                ),
            )  # fmt: skip
            self._destinations[name] = owner, client, channel

    def _remove_destination(self) -> None:
        name = self._one_of(self._destinations)
        if not name:
            return
        owner, client, channel = self._destinations.pop(name)
        sends = owner.startswith("publication")
        # The C driver does not answer if the removal by id is refused: docs/findings.
        added = ("OperationSuccess", name)
        is_there = owner in self._publications
        is_there = is_there and all(driver.responses[added] for driver in self._drivers)

        def command(client_id, own_id, driver) -> Command:
            ids = client_id, own_id, driver.owner_of_destinations(owner)
            if is_there and by_id:
                return RemoveDestinationById(*ids, driver.names.number(name))
            return (RemoveDestination if sends else RemoveReceiveDestination)(*ids, channel)

        by_id = self._random.random() < 0.4
        self._command("removal", client, f"Remove {name} {channel} {by_id=}", command)

    def _add_counter(self) -> None:
        type_id = self._random.choice((1_001, 1_002, 5, 0, -1))
        key = self._random.choice((b"", b"key", b"k" * 112, b"k" * 113))
        label = self._random.choice(("", "label", "l" * 380, "l" * 381))
        client = self._random.choice(self.clients)
        name = self._command(
            "counter", client, f"AddCounter {type_id} {len(key)} {len(label)}",
            lambda client_id, own_id, _: AddCounter(client_id, own_id, type_id, key, label),
        )  # fmt: skip
        self._counters[name] = client

    def _add_static_counter(self) -> None:
        registration_id = self._random.choice((1, 2, 3))
        self._command(
            "counter", self._random.choice(self.clients), f"AddStaticCounter {registration_id}",
            lambda client_id, own_id, _: AddStaticCounter(
                client_id, own_id, registration_id, 1_003, b"key", "static"
            ),
        )  # fmt: skip

    def _close_client(self) -> None:
        if len(self.clients) < 2:
            return
        client = self._random.choice(self.clients)
        self._forget_client(client)
        self._on_all(
            f"{client} closes",
            lambda driver: driver.send(ClientClose(driver.names.number(client))),
        )

    def _forget_client(self, client: str) -> None:
        """Take a client out of use, with all that it owns."""
        self.clients.remove(client)
        for owned in (self._publications, self._subscriptions):
            for name in [name for name, (owner, _) in owned.items() if owner == client]:
                del owned[name]
                self._removed.append(name)
        self._counters = {name: of for name, of in self._counters.items() if of != client}
        kept = self._destinations.items()
        self._destinations = {name: each for name, each in kept if each[1] != client}

    def _reject_image(self) -> None:
        def images(driver: DriverUnderTest) -> dict[str, int]:
            return {
                f"{driver.names.of(each.correlation_id)} of "
                f"{driver.names.of(each.subscription_registration_id)}": each.correlation_id
                for each in self._images(driver)
            }

        of_all = [images(driver) for driver in self._drivers]
        image = self._one_of(sorted(set.intersection(*map(set, of_all))))
        if image:
            # Which of two reasons is sent depends on when the agents of a driver run.
            drawn, name = self._random.choice(("", "because", "x" * 1_000)), self._new_name("no")
            reason = self._reasons.setdefault(image, drawn)
            client, numbers = self._random.choice(self.clients), iter(of_all)
            self._awaited = name
            self._on_all(
                f"{client} rejects {image}, {len(reason)} bytes",
                lambda driver: driver.send(
                    RejectImage(
                        *(driver.names.number(client), driver.new_id(name)),
                        *(next(numbers)[image], 0, reason),
                    )
                ),
            )

    def _next_session_id(self) -> None:
        stream_id = self._random.choice(STREAM_IDS)
        self._command(
            "session", self._random.choice(self.clients), f"GetNextAvailableSessionId {stream_id}",
            lambda client_id, own_id, _: GetNextAvailableSessionId(client_id, own_id, stream_id),
        )  # fmt: skip

    def _command(self, kind: str, client: str, text: str, make: Callable[..., Command]) -> str:
        """Send a command of a client to all drivers. Returns its name."""
        name = self._new_name(kind)

        def send(driver: DriverUnderTest) -> None:
            own_id = driver.new_id(name)
            driver.send(make(driver.names.number(client), own_id, driver))

        self._on_all(f"{client}: {name} = {text}", send)
        self._awaited = name
        return name

    def _on_all(self, text: str, act: Callable[[DriverUnderTest], object]) -> None:
        self.done.append(text)
        for driver in self._drivers:
            act(driver)

    def _one_of(self, names: object) -> str:
        listed = list(names)
        return self._random.choice(listed) if listed else ""

    def _new_name(self, kind: str) -> str:
        return f"{kind} {next(self._numbers)}"


def consume(driver: DriverUnderTest, images: list[AvailableImage]) -> None:
    """Set the positions of subscribers to the ends of their images."""
    tips = {
        counter.registration_id: counter.value
        for counter in driver.counters
        if counter.type_id in (RECEIVER_POSITION, PUBLISHER_POSITION)
    }
    for image in images:
        if image.correlation_id in tips:
            driver.set_position(image, tips[image.correlation_id])
