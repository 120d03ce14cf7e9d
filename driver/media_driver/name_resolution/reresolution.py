"""Re-resolves the host name of an endpoint from which nothing is received.

    every second       no activity for 5 s     --> look up the name
    event of an agent  no activity             --> look up the name
    lookup result      the address has changed --> set_address(address)

Applies to the unicast endpoints of publications, to manual destinations and to the control
addresses of subscriptions. The agent that applies a new address increments the counter of
resolution changes. Source: spec 3.7, 4.1 and 4.9, Aeron 1.53.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.address_text import parse_host_port
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.error_log import RecordError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media.name_resolver import numeric_address
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup

SILENCE_NS = 5_000_000_000
ERROR_KIND = "re-resolution"
"""Name under which the error log groups errors whose messages contain names that clients chose."""


class LookupService(Protocol):
    """The interface through which lookups are started. NameResolver implements it."""

    def submit(self, host: str, key: str) -> Lookup:
        """Start a lookup of a host name."""


@dataclass(eq=False)
class WatchedName:
    """A host name that is looked up again when its endpoint is inactive."""

    key: str
    """The channel parameter that contains the name: `endpoint` or `control`."""
    name: str
    """The name as host:port, as in the channel."""
    address: SocketAddress | None
    """The current address, or None if the name could not be resolved."""
    set_address: Callable[[SocketAddress], None]
    """Function that passes a new address to the agent. It is retried if it raises a DriverError."""
    last_activity_ns: Callable[[], int] | None = None
    """Function that returns the time of the endpoint's last activity, or 0. None if an agent
    reports inactivity."""
    retries_each_check: bool = False
    """Whether to repeat the lookup at each check, not only after another 5 s of inactivity."""
    silent_since_ns: int = 0
    lookup: Lookup | None = field(default=None, repr=False)


class Reresolution:
    """Looks up names again when their endpoints are inactive. Only the conductor uses it."""

    def __init__(
        self,
        names: LookupService,
        check_interval_ns: int,
        record_error: RecordError,
        now_ns: int,
    ) -> None:
        self._names = names
        self._interval_ns = check_interval_ns
        self._record_error = record_error
        self._check_deadline_ns = now_ns + check_interval_ns
        self._watched: dict[int, WatchedName] = {}

    @property
    def is_watching(self) -> bool:
        """Whether a name may have to be looked up again."""
        return bool(self._watched)

    def watch(self, watched: WatchedName, now_ns: int) -> WatchedName:
        """Start watching a name. A numeric address is ignored."""
        watched.silent_since_ns = now_ns
        if numeric_address(parse_host_port(watched.key, watched.name).host) is None:
            self._watched[id(watched)] = watched
        return watched

    def unwatch(self, watched: WatchedName) -> None:
        """Stop watching a name and discard its pending lookup. Repeated calls have no effect."""
        self._watched.pop(id(watched), None)

    def do_work(self, now_ns: int) -> int:
        """Process finished lookups and start the lookups that are due. Returns the work count."""
        work_count = 0
        # Iterate over a copy, because `set_address` may unwatch names.
        for watched in list(self._watched.values()):
            if watched.lookup is not None and watched.lookup.is_done:
                self._on_result(watched, watched.lookup)
                work_count += 1
        if self._interval_ns > 0 and now_ns > self._check_deadline_ns:
            self._check_deadline_ns = now_ns + self._interval_ns
            work_count += sum(self._check(watched, now_ns) for watched in self._watched.values())
        return work_count

    def request_lookup(self, watched: WatchedName) -> None:
        """Start a lookup of a watched name, unless a lookup is pending."""
        if watched.lookup is None and id(watched) in self._watched:
            host = parse_host_port(watched.key, watched.name).host
            watched.lookup = self._names.submit(host, watched.key)

    def _check(self, watched: WatchedName, now_ns: int) -> int:
        if watched.last_activity_ns is None or watched.lookup is not None:
            return 0
        if now_ns <= max(watched.silent_since_ns, watched.last_activity_ns()) + SILENCE_NS:
            return 0
        if not watched.retries_each_check:
            watched.silent_since_ns = now_ns
        self.request_lookup(watched)
        return 1

    def _on_result(self, watched: WatchedName, lookup: Lookup) -> None:
        watched.lookup = None
        try:
            host, scope_id = lookup.result()
        except UnknownHostError as error:
            self._record_error(ErrorCode.UNKNOWN_HOST, str(error), ERROR_KIND)
            return
        port = parse_host_port(watched.key, watched.name).port
        address = SocketAddress(host, port, scope_id)
        if address == watched.address:
            return
        try:
            watched.set_address(address)
        except DriverError as error:
            # Keep the old address, which makes the next lookup try again.
            self._record_error(ErrorCode.GENERIC_ERROR, str(error), ERROR_KIND)
        else:
            watched.address = address
