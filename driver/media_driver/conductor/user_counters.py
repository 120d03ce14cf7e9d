"""Counters that clients add, which are freed with the client unless they are static.

Source: spec 7.3, Aeron 1.53.
"""

from typing import NamedTuple

from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.counter import (
    AddCounter,
    AddStaticCounter,
    CounterReady,
    RemoveCounter,
    StaticCounter,
    UnavailableCounter,
)
from windtunnel.driver.media_driver.command_error import CommandError
from windtunnel.driver.media_driver.conductor.client_proxy import ClientProxy
from windtunnel.driver.media_driver.conductor.client_registry import ClientRegistry
from windtunnel.driver.media_driver.conductor.stream_counters import NO_OWNER


class _UserCounter(NamedTuple):
    counter_id: int
    client_id: int


class UserCounters:
    """The counters that clients have added, by registration id. Static counters are found in the
    counters file.
    """

    def __init__(
        self, manager: CountersManager, clients: ClientProxy, registry: ClientRegistry
    ) -> None:
        self._manager = manager
        self._clients = clients
        self._registry = registry
        self._counters: dict[int, _UserCounter] = {}

    def add(self, command: AddCounter) -> None:
        """Allocate a counter for a client and respond to the client."""
        self._registry.get_or_add(command.client_id)
        registration_id = command.correlation_id
        counter_id = self._manager.allocate(
            command.type_id, command.key, command.label, registration_id, command.client_id
        )
        self._counters[registration_id] = _UserCounter(counter_id, command.client_id)
        self._clients.transmit(CounterReady(registration_id, counter_id))

    def is_held(self, registration_id: int) -> bool:
        """Return whether a registration id belongs to a counter that a client has added."""
        return registration_id in self._counters

    def add_static(self, command: AddStaticCounter) -> None:
        """Allocate a static counter, or find the existing one, and respond to the client.

        The driver's own counters are found as well: of two counters with one type and registration
        id, clients would only find the first.
        """
        self._registry.get_or_add(command.client_id)
        type_id, registration_id = command.type_id, command.registration_id
        values = self._manager.values
        counter_id = int(counters.find(self._manager.metadata, values, type_id, registration_id))
        if counter_id == counters.NULL_COUNTER_ID:
            counter_id = self._manager.allocate(
                type_id, command.key, command.label, registration_id, NO_OWNER
            )
        elif counters.owner_id(values, counter_id) != NO_OWNER:
            raise CommandError(
                "cannot add static counter, because a non-static counter exists "
                f"(counterId={counter_id}) for typeId={type_id} and "
                f"registrationId={registration_id}"
            )
        self._clients.transmit(StaticCounter(command.correlation_id, counter_id))

    def remove(self, command: RemoveCounter) -> None:
        """Free a client's counter, respond to the client, and announce its removal to all
        clients.
        """
        counter = self._counters.get(command.registration_id)
        if counter is None or counter.client_id != command.client_id:
            raise CommandError(
                f"unknown counter {command.registration_id}", ErrorCode.UNKNOWN_COUNTER
            )
        self._clients.operation_succeeded(command.correlation_id)
        self._free(command.registration_id)

    def free_all_of(self, client_id: int) -> list[UnavailableCounter]:
        """Free all counters of a client. Returns the notifications to transmit to all clients."""
        gone = [key for key, item in self._counters.items() if item.client_id == client_id]
        return [self._take(registration_id) for registration_id in gone]

    def _free(self, registration_id: int) -> None:
        self._clients.transmit(self._take(registration_id))

    def _take(self, registration_id: int) -> UnavailableCounter:
        counter = self._counters.pop(registration_id)
        self._manager.free(counter.counter_id)
        return UnavailableCounter(registration_id, counter.counter_id)
