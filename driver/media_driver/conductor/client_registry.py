"""The driver's clients. A client is live while its heartbeat counter is updated.

A client's first command that adds a resource registers the client. When a client closes, its
heartbeat is set to zero. Source: spec 6.7, Aeron 1.53.
"""

from dataclasses import dataclass

from windtunnel.driver.base.system import NS_PER_MS
from windtunnel.driver.cnc import counters
from windtunnel.driver.command.client import ClientTimeout
from windtunnel.driver.command.counter import CounterReady, UnavailableCounter
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.conductor.driver_resources import DriverResources


@dataclass(eq=False)
class Client:
    """A client of the driver. The client writes its heartbeats to the counter `heartbeat_id`."""

    client_id: int
    heartbeat_id: int
    is_closed: bool = False


class ClientRegistry:
    """All registered clients, by client id."""

    def __init__(self, resources: DriverResources) -> None:
        self._resources = resources
        self._clients: dict[int, Client] = {}

    def get_or_add(self, client_id: int) -> Client:
        """Return the client with the given id. Registers an unknown client and announces it to all
        clients.
        """
        client = self._clients.get(client_id)
        if client is None:
            now_ms = self._resources.clock.now_ms()
            heartbeat_id = self._resources.counters.client_heartbeat(client_id, now_ms)
            client = self._clients[client_id] = Client(client_id, heartbeat_id)
            self._resources.clients.transmit(CounterReady(client_id, heartbeat_id))
        return client

    def on_keepalive(self, client_id: int) -> None:
        """Update the heartbeat of a client that has sent a keepalive command."""
        client = self._clients.get(client_id)
        if client is not None:
            now_ms = self._resources.clock.now_ms()
            counters.set_release(self._resources.values, client.heartbeat_id, now_ms)

    def on_close(self, client_id: int) -> None:
        """Mark a client as closed. The conductor's timer then frees the client's resources."""
        client = self._clients.get(client_id)
        if client is not None:
            client.is_closed = True
            counters.set_release(self._resources.values, client.heartbeat_id, 0)

    def expired(self, now_ms: int) -> list[int]:
        """Return the ids of the clients that have closed or timed out."""
        timeout_ms = self._resources.context.client_liveness_timeout_ns // NS_PER_MS
        for client in self._clients.values():
            if self._heartbeat_ms(client) > now_ms + timeout_ms:
                # No client can have written this time. It must write a new time before the timeout.
                counters.set_release(self._resources.values, client.heartbeat_id, now_ms)
        return [
            client.client_id
            for client in self._clients.values()
            if client.is_closed or now_ms > self._heartbeat_ms(client) + timeout_ms
        ]

    def _heartbeat_ms(self, client: Client) -> int:
        return int(counters.get_acquire(self._resources.values, client.heartbeat_id))

    def remove(self, client_id: int) -> None:
        """Remove a client. Announces the timeout to all clients, unless the client has closed
        itself.
        """
        client = self._clients.pop(client_id)
        self._resources.counters.free(client.heartbeat_id)
        if not client.is_closed:
            counters.increment(self._resources.values, system_counters.CLIENT_TIMEOUTS)
            self._resources.clients.transmit(ClientTimeout(client_id))
        self._resources.clients.transmit(UnavailableCounter(client_id, client.heartbeat_id))
