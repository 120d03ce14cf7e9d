"""Lists the addresses of the local network interfaces, using getifaddrs(3).

The list omits interfaces that are down and addresses other than IPv4 and IPv6.
"""

import ctypes
import os

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel import socket_address
from windtunnel.driver.channel.resolver import NetworkInterface

IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_MULTICAST = 0x1000
_ENTRIES_MAX = 4096
_FAMILY_LENGTH = {2: socket_address.V4_LENGTH, 10: socket_address.V6_LENGTH}


class _IfAddrs(ctypes.Structure):
    """The C structure `struct ifaddrs`."""


_IfAddrs._fields_ = [
    ("next", ctypes.POINTER(_IfAddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
    ("netmask", ctypes.c_void_p),
    ("destination", ctypes.c_void_p),
    ("data", ctypes.c_void_p),
]


def list_interfaces() -> list[NetworkInterface]:
    """Return all addresses of all interfaces that are up, in the system's order."""
    libc = ctypes.CDLL(None, use_errno=True)
    head = ctypes.POINTER(_IfAddrs)()
    if libc.getifaddrs(ctypes.byref(head)) != 0:
        code = ctypes.get_errno()
        raise DriverError(f"cannot list network interfaces: ({code}) {os.strerror(code)}")
    found = []
    try:
        cursor = head
        for _ in range(_ENTRIES_MAX):
            if not cursor:
                break
            interface = _read(libc, cursor.contents)
            if interface is not None:
                found.append(interface)
            cursor = cursor.contents.next
    finally:
        libc.freeifaddrs(head)
    return found


def _read(libc: ctypes.CDLL, entry: _IfAddrs) -> NetworkInterface | None:
    if not entry.flags & IFF_UP or not entry.address:
        return None
    family = int.from_bytes(ctypes.string_at(entry.address, 2), "little")
    length = _FAMILY_LENGTH.get(family)
    if length is None:
        return None
    address = socket_address.decode(ctypes.string_at(entry.address, length))
    assert address is not None
    return NetworkInterface(
        name=os.fsdecode(entry.name),
        index=libc.if_nametoindex(entry.name),
        host=address.host,
        is_loopback=bool(entry.flags & IFF_LOOPBACK),
        is_multicast=bool(entry.flags & IFF_MULTICAST),
        scope_id=address.scope_id,
    )
