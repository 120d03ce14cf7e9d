"""Counters for a whole archive. Recordings and sessions have additional counters.

    key    0: archive id (i64)
    label  <what it counts> - archiveId=<id>

Two archives with the same id would be indistinguishable, so an id is rejected if the driver already
has counters of an archive with that id. Source: archive-protocol 2.7, 5.6.
"""

import struct
from dataclasses import dataclass

from windtunnel.driver.base.clock import Clock
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.counter import Counter

ERRORS = 101
CONTROL_SESSIONS = 102
MAX_CYCLE_TIME = 103
CYCLES_EXCEEDED = 104
MAX_WRITE_TIME = 105
WRITTEN_BYTES = 106
WRITE_TIME = 107
MAX_READ_TIME = 108
READ_BYTES = 109
READ_TIME = 110
RECORDING_SESSIONS = 111
REPLAY_SESSIONS = 112
CONTROL_SESSION = 113

VERSION_TEXT = "version=1.53.0 commit=windtunnel"
_KEY = struct.Struct("<q")


def key(archive_id: int) -> bytes:
    """Return the key of a counter. The key contains the archive id."""
    return _KEY.pack(archive_id)


def suffix(archive_id: int) -> str:
    """Return the suffix of a counter label, which contains the archive id."""
    return f" - archiveId={archive_id}"


def require_unique(client: Aeron, archive_id: int) -> None:
    """Raise ConfigurationError if an archive with this id already uses the same driver."""
    for counter in client.counters:
        if counter.type_id == CONTROL_SESSIONS and counter.key[: _KEY.size] == key(archive_id):
            raise ConfigurationError(
                f"AERON_ARCHIVE_ID={archive_id}: expected an id that no other archive of this "
                "media driver uses"
            )


@dataclass(frozen=True, slots=True)
class TransferCounters:
    """Counters for the duration and the length of an agent's reads or writes."""

    clock: Clock
    max_time: Counter
    total_bytes: Counter
    total_time: Counter

    def begin(self) -> int:
        """Start timing a transfer. Returns the start time, to be passed to `end`."""
        return self.clock.now_ns()

    def end(self, began_ns: int, byte_count: int) -> None:
        """Count the bytes and the duration of a transfer. Call it only from the agent's thread."""
        duration_ns = self.clock.now_ns() - began_ns
        self.max_time.set(max(self.max_time.get(), duration_ns))
        self.total_bytes.set(self.total_bytes.get() + byte_count)
        self.total_time.set(self.total_time.get() + duration_ns)


class ArchiveCounters:
    """Allocates and holds the counters of one archive."""

    def __init__(self, client: Aeron, archive_id: int, clock: Clock) -> None:
        """Allocate the counters. Raises RegistrationError if the driver rejects one of them."""
        self._client, self._archive_id = client, archive_id
        self._added: list[Counter] = []
        self.errors = self.add(ERRORS, f"Archive Errors: {VERSION_TEXT}")
        self.control_sessions = self.add(CONTROL_SESSIONS, "Archive Control Sessions")
        self.recording_sessions = self.add(RECORDING_SESSIONS, "Archive Recording Sessions")
        self.replay_sessions = self.add(REPLAY_SESSIONS, "Archive Replay Sessions")
        self.writes = TransferCounters(
            clock,
            self.add(MAX_WRITE_TIME, "archive-recorder max write time in ns"),
            self.add(WRITTEN_BYTES, "archive-recorder total write bytes"),
            self.add(WRITE_TIME, "archive-recorder total write time in ns"),
        )
        self.reads = TransferCounters(
            clock,
            self.add(MAX_READ_TIME, "archive-replayer max read time in ns"),
            self.add(READ_BYTES, "archive-replayer total read bytes"),
            self.add(READ_TIME, "archive-replayer total read time in ns"),
        )

    def add(self, type_id: int, label: str) -> Counter:
        """Allocate an additional counter for this archive."""
        counter = self._client.add_counter(
            type_id, key(self._archive_id), label + suffix(self._archive_id)
        )
        self._added.append(counter)
        return counter

    def close(self) -> None:
        """Free all counters immediately. Otherwise, the driver would free them after the client has
        closed.
        """
        for counter in self._added:
            counter.close()
