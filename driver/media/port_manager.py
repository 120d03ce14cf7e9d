"""Allocates ports for channels with port 0, like Aeron's wildcard port manager.

With a range of "0 0" the system chooses the port. Ports that channels name explicitly are tracked
and never allocated. Another process may still use an allocated port; binding then fails with an
error. Source: spec 9.3 and 10.1, Aeron 1.53.
"""

from windtunnel.driver.base.errors import ConfigurationError, DriverError

PORT_MAX = 65535


class PortManager:
    """The ports in use by all sender sockets, or by all receiver sockets, of one driver."""

    def __init__(self, low: int = 0, high: int = 0) -> None:
        self.low = low
        self.high = high
        self._next = low
        self._used: dict[int, int] = {}

    def acquire(self, port: int) -> int:
        """Return the port to which a socket must be bound, given the `port` in its channel. Returns
        0 if the system must choose the port.
        """
        if port == 0 and self.high == 0:
            return 0
        if port == 0:
            port = self._find_free()
        self._used[port] = self._used.get(port, 0) + 1
        return port

    def release(self, port: int) -> None:
        """Release a port that `acquire` returned."""
        count = self._used.pop(port, 0)
        if count > 1:
            self._used[port] = count - 1

    def _find_free(self) -> int:
        size = self.high - self.low + 1
        for step in range(size):
            port = self.low + (self._next - self.low + step) % size
            if port not in self._used:
                self._next = port + 1 if port < self.high else self.low
                return port
        raise DriverError(f"no available ports in range {self.low} {self.high}")


def parse_port_range(setting: str, text: str) -> PortManager:
    """Parse a port range of the form "low high". Raises ConfigurationError if the range is
    invalid.
    """
    pieces = text.split()
    if len(pieces) != 2 or not all(
        piece.isascii() and piece.isdecimal() and len(piece) <= 9 for piece in pieces
    ):
        raise ConfigurationError(
            f"{setting}={text}: expected two port numbers, such as 20000 20100"
        )
    low, high = int(pieces[0]), int(pieces[1])
    if high > PORT_MAX:
        raise ConfigurationError(f"{setting}={text}: expected port numbers up to {PORT_MAX}")
    if low > high or (low == 0 and high != 0):
        raise ConfigurationError(
            f"{setting}={text}: expected '0 0', or two ports, each at least 1, in ascending order"
        )
    return PortManager(low, high)
