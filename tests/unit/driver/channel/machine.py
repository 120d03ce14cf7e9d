"""A host whose names and interfaces are a table, so that tests do not depend on a real one."""

import ipaddress

from windtunnel.driver.channel.resolver import NetworkInterface, UnknownHostError

LOOPBACK = NetworkInterface("lo", 1, "127.0.0.1", is_loopback=True, is_multicast=False)
LOOPBACK_V6 = NetworkInterface("lo", 1, "::1", is_loopback=True, is_multicast=False)
LAN = NetworkInterface("eth0", 2, "10.0.0.7", is_loopback=False, is_multicast=True)
WAN = NetworkInterface("eth1", 3, "192.168.4.9", is_loopback=False, is_multicast=True)
LAN_V6 = NetworkInterface("eth0", 2, "fd00::7", is_loopback=False, is_multicast=True)

NAMES = {"localhost": "127.0.0.1", "far": "10.9.9.9", "far6": "fd00::99"}


class Machine:
    """A `Resolver` that uses the tables above."""

    def __init__(self, *interfaces):
        self._interfaces = list(interfaces or (LOOPBACK, LOOPBACK_V6, LAN, WAN, LAN_V6))

    def resolve(self, host, key):
        try:
            return str(ipaddress.ip_address(host)), 0
        except ValueError:
            if host not in NAMES:
                raise UnknownHostError(f"{key}={host}: unknown host") from None
            return NAMES[host], 0

    def interfaces(self):
        return self._interfaces
