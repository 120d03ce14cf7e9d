"""A raw socket that receives every packet that arrives at one interface of the relay.

The socket does not receive outgoing packets. It requires CAP_NET_RAW, and its large receive buffer
requires CAP_NET_ADMIN.
"""

import fcntl
import socket
import struct
from dataclasses import dataclass

ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
SO_SNDBUFFORCE = 32
SO_TIMESTAMPNS = 35
SIOCGIFADDR = 0x8915
SIOCGIFMTU = 0x8921
SIOCGIFHWADDR = 0x8927

RECEIVE_BUFFER_BYTES = 256 << 20
"""Room for one second at full load. The kernel allocates memory only for queued packets."""
SEND_BUFFER_BYTES = 8 << 20
ETHERNET_HEADER_LENGTH = 14


class PortError(Exception):
    """Raised for an interface that cannot be used. The message says why and what is needed."""


@dataclass
class Port:
    """An interface of the relay, with a raw socket on it."""

    name: str
    socket: socket.socket
    mac: bytes
    address: str | None
    """The relay's IPv4 address on this interface, or None if it has none."""
    mtu: int

    @property
    def packet_length_max(self) -> int:
        """Length in bytes of the longest packet that the interface carries, including the Ethernet
        header.
        """
        return self.mtu + ETHERNET_HEADER_LENGTH + 4

    def kernel_drops(self) -> int:
        """Return the number of packets dropped since the last call because the receive buffer was
        full.
        """
        raw = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", raw)[1])

    def discard(self) -> None:
        """Discard all packets that the socket has received and that were not read yet."""
        while True:
            try:
                self.socket.recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
        self.kernel_drops()

    def close(self) -> None:
        self.socket.close()


def open_port(name: str) -> Port:
    """Open a raw socket on an interface. Raises PortError if that is impossible or not allowed."""
    try:
        # With protocol 0 the socket receives nothing until it is bound.
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except PermissionError as error:
        text = "raw sockets need CAP_NET_RAW: run as root, or in a separate user namespace"
        raise PortError(f"cannot open a packet socket: {text}") from error
    try:
        raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        _enlarge(raw, SO_RCVBUFFORCE, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        _enlarge(raw, SO_SNDBUFFORCE, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        raw.bind((name, ETH_P_ALL))
        mac = _interface_facts(raw, name, SIOCGIFHWADDR)[18:24]
        mtu = struct.unpack("=i", _interface_facts(raw, name, SIOCGIFMTU)[16:20])[0]
    except OSError as error:
        raw.close()
        raise PortError(f"interface {name}: {error.strerror}") from error
    try:
        address = socket.inet_ntoa(_interface_facts(raw, name, SIOCGIFADDR)[20:24])
    except OSError:
        address = None
    return Port(name=name, socket=raw, mac=mac, address=address, mtu=mtu)


def _enlarge(raw: socket.socket, forced: int, plain: int, length: int) -> None:
    """Set the length of a socket buffer, beyond the system's limit if the process has the
    privilege.
    """
    try:
        raw.setsockopt(socket.SOL_SOCKET, forced, length)
    except PermissionError:
        raw.setsockopt(socket.SOL_SOCKET, plain, length)


def _interface_facts(raw: socket.socket, name: str, request: int) -> bytes:
    return fcntl.ioctl(raw.fileno(), request, struct.pack("256s", name.encode()[:15]))
