"""Driver name resolvers on an in-memory network with manual clocks and a fake name service."""

import ipaddress

import numpy as np

from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.cnc import counters
from windtunnel.driver.cnc.counters_manager import CountersManager
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.media_driver.agent import system_counters
from windtunnel.driver.media_driver.context import Context
from windtunnel.driver.media_driver.name_resolution.lookups import Lookups

MS = 1_000_000
SECOND = 1_000 * MS
FIRST_FREE = 46


class CounterFile:
    """A counters file with the system counters."""

    def __init__(self, clock):
        self.values = np.zeros(96 * counters.COUNTER_LENGTH, np.uint8)
        metadata = np.zeros(96 * counters.METADATA_LENGTH, np.uint8)
        self.manager = CountersManager(metadata, self.values, clock)
        for index, label in enumerate(system_counters.labels(Context(threading_mode="INVOKER"))):
            self.manager.allocate(0, index.to_bytes(4, "little"), label, index, -1)
        self.reader = CountersReader(metadata, self.values)

    def get(self, counter_id):
        return int(counters.get(self.values, counter_id))

    def set(self, counter_id, value):
        counters.set(self.values, counter_id, value)

    def by_type(self, type_id):
        return [counter for counter in self.reader if counter.type_id == type_id]


class NameService:
    """A resolver with configurable hosts and a lookup duration on the manual clock."""

    def __init__(self, clock, **hosts):
        self.hosts = dict(hosts)
        self.looked_up = []
        self.duration_ns = 0
        self._clock = clock

    def resolve(self, host, key):
        self.looked_up.append(host)
        self._clock.advance(self.duration_ns)
        try:
            return str(ipaddress.ip_address(host)), 0
        except ValueError:
            pass
        if host not in self.hosts:
            raise UnknownHostError(f"{key}={host}: unknown host")
        return self.hosts[host], 0

    def interfaces(self):
        return []


class HeldLookups(Lookups):
    """Lookups that wait until the test calls `complete`."""

    def __init__(self, system, clock):
        super().__init__(system, clock, is_threaded=False)
        self._held = []

    def _resolve(self, request):
        self._held.append(request)

    def complete(self):
        held, self._held = self._held, []
        for request in held:
            super()._resolve(request)


class Network:
    """Delivers each datagram to the socket bound to its destination, or records it as lost."""

    def __init__(self):
        self.sockets = {}
        self.lost = []

    def bind(self, local, seen_as=None):
        socket = MemorySocket(self, local, seen_as or local)
        self.sockets[(seen_as or local)] = socket
        return socket


class MemorySocket:
    def __init__(self, network, local, seen_as):
        self.local, self._seen_as, self._network = local, seen_as, network
        self.waiting, self.sent = [], []
        self.send_result = None
        self.is_closed = False

    def send(self, datagram, to):
        self.sent.append((datagram, to))
        if self.send_result is not None:
            return self.send_result
        target = self._network.sockets.get(to)
        if target is None:
            self._network.lost.append((datagram, to))
        else:
            target.waiting.append((datagram, self._seen_as))
        return len(datagram)

    def receive(self):
        waiting, self.waiting = self.waiting, []
        return iter(waiting)

    def close(self):
        self.is_closed = True


def make_clock():
    return ManualClock()
