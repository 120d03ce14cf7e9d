"""Socket addresses: a numeric host and a port, encoded as a `struct sockaddr` of 28 bytes.

    IPv4   0        2      4           8                16
           +--------+------+-----------+----------------+
           | AF_INET| port |  address  |     zeros      |
           +--------+------+-----------+----------------+
    IPv6   0        2      4           8                24         28
           +--------+------+-----------+----------------+----------+
           |AF_INET6| port | flow info |    address     | scope id |
           +--------+------+-----------+----------------+----------+

The family and the scope id are in host byte order, the port and the address in network byte order.
Records and kernels use a *name*, which is a uint8[28] with a separate length. A length of 0 means
"no address". A name may have been received from the network: `decode` returns None if its bytes are
not a valid address. Source: Linux ip(7), ipv6(7).
"""

import ipaddress
import socket
import struct
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from windtunnel.driver.base.atomics import copy, get_i32, get_i64, get_u8, get_u16
from windtunnel.driver.kernels.jit import kernel

FAMILY = 0
PORT = 2
V4_ADDRESS = 4
V4_LENGTH = 16
V6_ADDRESS = 8
V6_SCOPE = 24
V6_LENGTH = 28
NAME_LENGTH_MAX = V6_LENGTH

_AF_INET = int(socket.AF_INET)
_AF_INET6 = int(socket.AF_INET6)

_parse_ip = lru_cache(maxsize=1024)(ipaddress.ip_address)


@kernel
def is_name(name, length):
    """Return whether the first `length` bytes of `name` (uint8[28]) are an IPv4 or IPv6 socket
    address.
    """
    if length < V4_LENGTH or length > NAME_LENGTH_MAX:
        return False
    family = get_u16(name, FAMILY)
    return (family == _AF_INET and length == V4_LENGTH) or (
        family == _AF_INET6 and length == V6_LENGTH
    )


@kernel
def port_of(name):
    """Return the port of a valid socket address."""
    return (get_u8(name, PORT) << 8) | get_u8(name, PORT + 1)


@kernel
def same_host(name, length, other, other_length):
    """Return whether two encoded socket addresses have the same IP address, ignoring their
    ports.
    """
    if length != other_length or not is_name(name, length) or not is_name(other, other_length):
        return False
    if length == V4_LENGTH:
        return get_i32(name, V4_ADDRESS) == get_i32(other, V4_ADDRESS)
    return (
        get_i64(name, V6_ADDRESS) == get_i64(other, V6_ADDRESS)
        and get_i64(name, V6_ADDRESS + 8) == get_i64(other, V6_ADDRESS + 8)
        and get_i32(name, V6_SCOPE) == get_i32(other, V6_SCOPE)
    )


@kernel
def same(name, length, other, other_length):
    """Return whether two encoded socket addresses have the same IP address and port."""
    return same_host(name, length, other, other_length) and port_of(name) == port_of(other)


@kernel
def copy_name(target, source, length):
    """Copy an encoded socket address of at most 28 bytes. Returns the number of bytes copied."""
    length = max(0, min(length, NAME_LENGTH_MAX))
    copy(target, 0, source, 0, length)
    return length


@dataclass(frozen=True, slots=True)
class SocketAddress:
    """A numeric IP address and a port."""

    host: str
    port: int
    scope_id: int = 0
    """The interface index of an IPv6 link-local address, or 0 for other addresses."""

    def __post_init__(self) -> None:
        _parse_ip(self.host)
        assert 0 <= self.port <= 0xFFFF, f"port {self.port} is not in 0..65535"

    @property
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return _parse_ip(self.host)

    @property
    def family(self) -> socket.AddressFamily:
        return socket.AF_INET if self.ip.version == 4 else socket.AF_INET6

    @property
    def is_multicast(self) -> bool:
        return self.ip.is_multicast

    @property
    def is_unspecified(self) -> bool:
        return self.ip.is_unspecified

    @property
    def text(self) -> str:
        """The address as `ip:port`, with brackets around an IPv6 address, as in logs and labels."""
        return f"[{self.host}]:{self.port}" if self.ip.version == 6 else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return self.text

    @property
    def python_name(self) -> tuple[str, int] | tuple[str, int, int, int]:
        """The address as a tuple for Python's socket functions."""
        if self.family == socket.AF_INET:
            return (self.host, self.port)
        return (self.host, self.port, 0, self.scope_id)

    def encode(self) -> bytes:
        """Return the address as a `struct sockaddr` of 16 or 28 bytes."""
        packed = self.ip.packed
        start = struct.pack("=H", int(self.family)) + struct.pack(">H", self.port)
        if len(packed) == 4:
            return start + packed + bytes(8)
        return start + bytes(4) + packed + struct.pack("=I", self.scope_id)

    def with_port(self, port: int) -> "SocketAddress":
        return SocketAddress(self.host, port, self.scope_id)


def from_python_name(name: tuple[object, ...]) -> SocketAddress:
    """Convert an address tuple from a Python socket function to a SocketAddress."""
    host, port = str(name[0]), int(str(name[1]))
    scope_id = int(str(name[3])) if len(name) > 3 else 0
    return SocketAddress(host.split("%")[0], port, scope_id)


def decode(data: bytes) -> SocketAddress | None:
    """Decode a `struct sockaddr`. Returns None if it is not a valid IPv4 or IPv6 address."""
    if len(data) < V4_LENGTH:
        return None
    (family,) = struct.unpack_from("=H", data, FAMILY)
    (port,) = struct.unpack_from(">H", data, PORT)
    if family == _AF_INET:
        return SocketAddress(str(ipaddress.IPv4Address(data[V4_ADDRESS : V4_ADDRESS + 4])), port)
    if family == _AF_INET6 and len(data) >= V6_LENGTH:
        # Unlike Python before 3.13, this writes an IPv4-mapped address as ::ffff:10.0.0.1.
        host = socket.inet_ntop(socket.AF_INET6, data[V6_ADDRESS:V6_SCOPE])
        return SocketAddress(host, port, struct.unpack_from("=I", data, V6_SCOPE)[0])
    return None


def write_name(target: np.ndarray, address: SocketAddress | None) -> int:
    """Write an address as a `struct sockaddr` to a record's name field. Returns the encoded length
    in bytes, or 0 if the address is None.
    """
    target[:] = 0
    data = b"" if address is None else address.encode()
    target[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    return len(data)


def read_name(name: np.ndarray, length: int) -> SocketAddress | None:
    """Read an address from the `struct sockaddr` in a record's name field. Returns None if the
    field is empty or invalid.
    """
    if not 0 < length <= NAME_LENGTH_MAX:
        return None
    return decode(bytes(bytearray(name[: int(length)])))
