"""Finds the MAC address of the host behind an interface, using ARP.

    relay -- who has 10.64.0.3? tell 10.64.0.2 --> broadcast
    relay <------- 10.64.0.3 is at aa:bb:... ----- host

The kernel answers ARP for the relay's own addresses itself. Not supported: IPv6 neighbours.
"""

import socket
import struct
import time
from ipaddress import AddressValueError, IPv4Address

from windtunnel.harness.middlebox.relay.port import Port, PortError

TIMEOUT_S = 5.0
RETRY_S = 0.1
PACKET_LENGTH_MAX = 65_536

_BROADCAST = b"\xff" * 6
_ETHERTYPE = 0x0806
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_ETHERNET = struct.Struct("!6s6sH")
_REQUEST, _REPLY = 1, 2
_ANY = "0.0.0.0"


def arp_request(mac: bytes, address: str, target_address: str) -> bytes:
    """Build an Ethernet frame with an ARP request for an IPv4 address."""
    ethernet = _ETHERNET.pack(_BROADCAST, mac, _ETHERTYPE)
    own, target = socket.inet_aton(address), socket.inet_aton(target_address)
    return ethernet + _ARP.pack(1, 0x0800, 6, 4, _REQUEST, mac, own, bytes(6), target)


def arp_answer(packet: bytes, target_address: str) -> bytes | None:
    """Return the MAC address that an ARP reply gives for an address, or None for other packets."""
    if len(packet) < _ETHERNET.size + _ARP.size:
        return None
    if _ETHERNET.unpack_from(packet)[2] != _ETHERTYPE:
        return None
    hardware, protocol, _, _, code, mac, sender, _, _ = _ARP.unpack_from(packet, _ETHERNET.size)
    if (hardware, protocol) != (1, 0x0800) or code not in (_REQUEST, _REPLY):
        return None
    return bytes(mac) if sender == socket.inet_aton(target_address) else None


def find_neighbour(port: Port, target_address: str, timeout_s: float = TIMEOUT_S) -> bytes:
    """Send ARP requests until the host replies. Raises PortError if there is no reply in time."""
    try:
        IPv4Address(target_address)
    except AddressValueError as error:
        text = f"expected an IPv4 address, found {target_address}: IPv6 hosts are not supported"
        raise PortError(f"interface {port.name}: {text}") from error
    request = arp_request(port.mac, port.address or _ANY, target_address)
    deadline = time.monotonic() + timeout_s
    port.socket.settimeout(RETRY_S)
    try:
        while time.monotonic() < deadline:
            port.socket.send(request)
            mac = _await_answer(port, target_address, min(deadline, time.monotonic() + RETRY_S))
            if mac is not None:
                return mac
        # The deadline may have passed while this process was not scheduled, with the reply queued.
        mac = _await_answer(port, target_address, time.monotonic() + RETRY_S)
        if mac is not None:
            return mac
    except OSError as error:
        raise PortError(f"interface {port.name}: {error.strerror or error}") from error
    finally:
        port.socket.settimeout(None)
    text = f"{target_address} did not answer ARP within {timeout_s:g} s"
    raise PortError(f"interface {port.name}: {text}: is the host up and on this interface?")


def _await_answer(port: Port, target_address: str, until: float) -> bytes | None:
    while time.monotonic() < until:
        try:
            packet = port.socket.recv(PACKET_LENGTH_MAX)
        except TimeoutError:
            return None
        mac = arp_answer(packet, target_address)
        if mac is not None:
            return mac
    return None
