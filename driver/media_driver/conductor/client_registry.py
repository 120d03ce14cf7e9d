"""The clients that the driver knows: alive as long as each keeps writing its heartbeat counter.

A client is made by its first command that adds something. One that closes writes nothing more: its
counter is set to zero. Source: spec 6.7, Aeron 1.53.
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
    """One client; `heartbeat_id` is the counter that it writes."""

    client_id: int
    heartbeat_id: int
    is_closed: bool = False


class ClientRegistry:
    """Every client, by id."""

    def __init__(self, parts: DriverResources) -> None:
        self._parts = parts
        self._clients: dict[int, Client] = {}

    def get_or_add(self, client_id: int) -> Client:
        """The client, introduced to everybody if it is new."""
        client = self._clients.get(client_id)
        if client is None:
            now_ms = self._parts.clock.now_ms()
            heartbeat_id = self._parts.counters.client_heartbeat(client_id, now_ms)
            client = self._clients[client_id] = Client(client_id, heartbeat_id)
            self._parts.clients.tell(CounterReady(client_id, heartbeat_id))
        return client

    def on_keepalive(self, client_id: int) -> None:
        """An old client says by command that it is alive."""
        client = self._clients.get(client_id)
        if client is not None:
            now_ms = self._parts.clock.now_ms()
            counters.set_release(self._parts.values, client.heartbeat_id, now_ms)

    def on_close(self, client_id: int) -> None:
        """A client is done; the timer cleans up behind it."""
        client = self._clients.get(client_id)
        if client is not None:
            client.is_closed = True
            counters.set_release(self._parts.values, client.heartbeat_id, 0)

    def dead(self, now_ms: int) -> list[int]:
        """Ids of clients that closed or fell silent."""
        timeout_ms = self._parts.context.client_liveness_timeout_ns // NS_PER_MS
        return [
            client.client_id
            for client in self._clients.values()
            if client.is_closed or now_ms > self._heartbeat_ms(client) + timeout_ms
        ]

    def _heartbeat_ms(self, client: Client) -> int:
        return int(counters.get_acquire(self._parts.values, client.heartbeat_id))

    def forget(self, client_id: int) -> None:
        """A client is gone: everybody is told, and that it fell silent unless it closed."""
        client = self._clients.pop(client_id)
        self._parts.counters.free(client.heartbeat_id)
        if not client.is_closed:
            counters.increment(self._parts.values, system_counters.CLIENT_TIMEOUTS)
            self._parts.clients.tell(ClientTimeout(client_id))
        self._parts.clients.tell(UnavailableCounter(client_id, client.heartbeat_id))
