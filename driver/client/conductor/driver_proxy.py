"""How a client speaks to its driver: commands into the ring, responses out of the broadcast.

Knows the messages' bytes and nothing of what they mean.
"""

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.client.errors import DriverBufferFullError
from windtunnel.driver.cnc import broadcast, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.command.codec import Command, Response, decode_response

TRIES_MAX = 10
"""How often a full ring is tried before it is an error. Source: Aeron 1.53, C client."""
PAUSE_NS = 1_000_000
"""Between two tries: the driver needs a turn to take commands out."""


class DriverProxy:
    """One client's end of the conversation."""

    def __init__(self, cnc: CncFile) -> None:
        self._to_driver = cnc.to_driver
        self._to_clients = cnc.to_clients
        self._receiver = broadcast.make_receiver(cnc.to_clients)
        self._scratch = broadcast.make_scratch(cnc.to_clients)
        self.client_id = self.next_correlation_id()

    def next_correlation_id(self) -> int:
        """A number that no other command to this driver has."""
        return int(ring_buffer.next_correlation_id(self._to_driver))

    def heartbeat_ms(self) -> int:
        """When the driver was last alive; -1 once it has closed."""
        return int(ring_buffer.consumer_heartbeat_ms(self._to_driver))

    def send(self, command: Command) -> None:
        """Put a command into the ring. Raises DriverBufferFullError where it stays full."""
        content = np.frombuffer(command.encode(), dtype=np.uint8).copy()
        type_id = int(command.TYPE_ID)
        for _ in range(TRIES_MAX):
            status = ring_buffer.write(self._to_driver, type_id, content, 0, content.size)
            if status == ring_buffer.OK:
                return
            if status != ring_buffer.INSUFFICIENT_CAPACITY:
                break
            system.sleep_ns(PAUSE_NS)
        raise DriverBufferFullError(
            f"the command ring takes no {command.TYPE_ID.name} of {content.size} bytes: {status}"
        )

    def receive(self) -> Response | int:
        """The next thing that the driver said to anybody.

        Returns: a response, or broadcast.NO_MESSAGE, broadcast.LAPPED or broadcast.CORRUPT. Raises
                 MalformedCommand, or UnknownCommand for what only a newer driver says
        """
        type_id, length = broadcast.receive(self._to_clients, self._receiver, self._scratch)
        if type_id <= 0:
            return int(type_id)
        return decode_response(type_id, self._scratch[:length])
