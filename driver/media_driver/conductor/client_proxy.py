"""How the driver speaks to its clients: every response goes into the broadcast, for all to hear.

Clients pick out what concerns them by correlation and registration ids.
"""

import numpy as np

from windtunnel.driver.cnc import broadcast
from windtunnel.driver.command.codec import Response
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess


class ClientProxy:
    """The transmitting end of the to-clients buffer."""

    def __init__(self, to_clients: np.ndarray) -> None:
        self._to_clients = to_clients

    def tell(self, response: Response) -> None:
        """Say a response to all clients."""
        content = np.frombuffer(response.encode(), dtype=np.uint8).copy()
        status = broadcast.transmit(
            self._to_clients, int(response.TYPE_ID), content, 0, content.size
        )
        assert status == broadcast.OK, f"response of {content.size} bytes not sent: {status}"

    def succeed(self, correlation_id: int) -> None:
        """A command was carried out."""
        self.tell(OperationSuccess(correlation_id))

    def fail(self, correlation_id: int, error_code: int, message: str) -> None:
        """A command was refused; an overlong explanation is cut."""
        self.tell(ErrorResponse(correlation_id, error_code, message[:8192]))
