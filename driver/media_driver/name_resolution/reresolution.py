"""Names that are looked up again because nothing was heard from where they pointed.

    every second   silent for 5 s?       --> look the name up
    an agent       tells of the silence  --> look the name up
    answer         another address       --> change(address)

Watched are unicast endpoints of publications, manual destinations, and control addresses of
subscriptions, each from the time that it is opened until it is closed. The agent that carries out
the change counts it. Source: spec 3.7, 4.1 and 4.9, Aeron 1.53.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.channel.address_text import parse_host_port
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.media.name_resolver import numeric_address
from windtunnel.driver.media_driver.name_resolution.lookups import Lookup

SILENCE_NS = 5_000_000_000


class Asking(Protocol):
    """Where names are looked up: a NameResolver."""

    def submit(self, host: str, key: str) -> Lookup:
        """Begin to look a host up."""


@dataclass(eq=False)
class Watched:
    """One name in use."""

    key: str
    """`endpoint` or `control`."""
    name: str
    """host:port as its channel says."""
    address: SocketAddress | None
    """Where frames go now; None if the name had no address."""
    change: Callable[[SocketAddress], None]
    """Have the agent send elsewhere; may raise a DriverError, and is then tried again."""
    last_activity_ns: Callable[[], int] | None = None
    """When something was last heard from there, 0 for never; None if an agent tells of silence."""
    is_asked_each_check: bool = False
    """Whether silence after an answer is met at the next check, not in another 5 s."""
    silent_since_ns: int = 0
    lookup: Lookup | None = field(default=None, repr=False)


class Reresolution:
    """What is watched; only the conductor calls it."""

    def __init__(
        self,
        names: Asking,
        check_interval_ns: int,
        record_error: Callable[[int, str], None],
        now_ns: int,
    ) -> None:
        self._names = names
        self._interval_ns = check_interval_ns
        self._record_error = record_error
        self._check_deadline_ns = now_ns + check_interval_ns
        self._watched: dict[int, Watched] = {}

    def watch(self, watched: Watched, now_ns: int) -> Watched:
        """Begin to watch; a numeric address never changes and is left alone."""
        watched.silent_since_ns = now_ns
        if numeric_address(parse_host_port(watched.key, watched.name).host) is None:
            self._watched[id(watched)] = watched
        return watched

    def unwatch(self, watched: Watched) -> None:
        """It is closed; an answer that is under way means nothing any more. May be repeated."""
        self._watched.pop(id(watched), None)

    def do_work(self, now_ns: int) -> int:
        """Take answers, and ask when it is time. Returns an amount of work."""
        work_count = 0
        # A copy, since a change may end what is watched.
        for watched in list(self._watched.values()):
            if watched.lookup is not None and watched.lookup.is_done:
                self._on_answer(watched, watched.lookup)
                work_count += 1
        if self._interval_ns > 0 and now_ns > self._check_deadline_ns:
            self._check_deadline_ns = now_ns + self._interval_ns
            work_count += sum(self._check(watched, now_ns) for watched in self._watched.values())
        return work_count

    def ask(self, watched: Watched) -> None:
        """Look a name up now, since an agent says that it is silent; once at a time."""
        if watched.lookup is None and id(watched) in self._watched:
            host = parse_host_port(watched.key, watched.name).host
            watched.lookup = self._names.submit(host, watched.key)

    def _check(self, watched: Watched, now_ns: int) -> int:
        if watched.last_activity_ns is None or watched.lookup is not None:
            return 0
        if now_ns <= max(watched.silent_since_ns, watched.last_activity_ns()) + SILENCE_NS:
            return 0
        if not watched.is_asked_each_check:
            watched.silent_since_ns = now_ns
        self.ask(watched)
        return 1

    def _on_answer(self, watched: Watched, lookup: Lookup) -> None:
        watched.lookup = None
        try:
            host, scope_id = lookup.result()
        except UnknownHostError as error:
            self._record_error(ErrorCode.UNKNOWN_HOST, str(error))
            return
        port = parse_host_port(watched.key, watched.name).port
        address = SocketAddress(host, port, scope_id)
        if address == watched.address:
            return
        try:
            watched.change(address)
        except DriverError as error:
            # The address stays the old one, so the next answer tries again.
            self._record_error(ErrorCode.GENERIC_ERROR, str(error))
        else:
            watched.address = address
