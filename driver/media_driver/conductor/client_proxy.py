"""Transmits responses to all clients through the broadcast buffer.

Clients recognise their responses by the correlation and registration ids.
"""

import numpy as np

from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess


class ClientProxy:
    """Transmits responses through the to-clients broadcast buffer."""

    def __init__(self, to_clients: np.ndarray) -> None:
        self._to_clients = to_clients

    def transmit(self, response: Response) -> None:
        """Transmit a response or notification to all clients."""
        content = np.frombuffer(response.encode(), dtype=np.uint8).copy()
        status = broadcast.transmit(
            self._to_clients, int(response.TYPE_ID), content, 0, content.size
        )
        assert status == broadcast.OK, f"response of {content.size} bytes not sent: {status}"

    def operation_succeeded(self, correlation_id: int) -> None:
        """Report to the clients that a command succeeded."""
        self.transmit(OperationSuccess(correlation_id))

    def on_error(self, correlation_id: int, error_code: int, message: str) -> None:
        """Report to the clients that a command failed. Truncates the message to 8192 characters."""
        self.transmit(ErrorResponse(correlation_id, error_code, message[:8192]))
