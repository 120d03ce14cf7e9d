"""Encodes commands for the driver's ring buffer and decodes responses from its broadcast."""

import numpy as np

from windtunnel.driver.base import system
from windtunnel.driver.client.errors import DriverBufferFullError
from windtunnel.driver.cnc import broadcast, ring_buffer
from windtunnel.driver.cnc.cnc_file import CncFile
from windtunnel.driver.command.codec import Command, Response, decode_response

SEND_ATTEMPTS_MAX = 10
"""Maximum number of attempts to write a command while the ring buffer is full. Source: Aeron 1.53,
C client."""
SEND_RETRY_DELAY_NS = 1_000_000
"""Delay in nanoseconds between attempts to write a command. The driver may read commands
meanwhile."""


class DriverProxy:
    """A client's access to the driver's command ring buffer and broadcast buffer."""

    def __init__(self, cnc: CncFile) -> None:
        self._to_driver = cnc.to_driver
        self._to_clients = cnc.to_clients
        self._receiver = broadcast.make_receiver(cnc.to_clients)
        self._scratch = broadcast.make_scratch(cnc.to_clients)
        self.client_id = self.next_correlation_id()

    def next_correlation_id(self) -> int:
        """Return a new correlation id that is unique among all clients of the driver."""
        return int(ring_buffer.next_correlation_id(self._to_driver))

    def heartbeat_ms(self) -> int:
        """Return the time of the driver's last heartbeat, or -1 if the driver has shut down."""
        return int(ring_buffer.consumer_heartbeat_ms(self._to_driver))

    def send(self, command: Command) -> None:
        """Write a command to the driver's ring buffer. Raises DriverBufferFullError if there is no
        space.
        """
        content = np.frombuffer(command.encode(), dtype=np.uint8).copy()
        type_id = int(command.TYPE_ID)
        for _ in range(SEND_ATTEMPTS_MAX):
            status = ring_buffer.write(self._to_driver, type_id, content, 0, content.size)
            if status == ring_buffer.OK:
                return
            if status != ring_buffer.INSUFFICIENT_CAPACITY:
                break
            system.sleep_ns(SEND_RETRY_DELAY_NS)
        raise DriverBufferFullError(
            f"the command ring buffer has no space for a {command.TYPE_ID.name} of "
            f"{content.size} bytes (status {status})"
        )

    def receive(self) -> Response | int:
        """Receive the next message from the driver's broadcast.

        Returns: a response, or broadcast.NO_MESSAGE, broadcast.LAPPED or broadcast.CORRUPT. Raises
                 MalformedCommand, or UnknownCommand for a type that only a newer driver sends
        """
        type_id, length = broadcast.receive(self._to_clients, self._receiver, self._scratch)
        if type_id <= 0:
            return int(type_id)
        return decode_response(type_id, self._scratch[:length])
