"""The counters of an archive that there is one of; those of recordings and sessions are theirs.

    key    0: archive id (i64)
    label  <what it counts> - archiveId=<id>

Two archives with one id would be taken for each other, so an id whose counters live already at the
driver is refused. Source: archive-protocol 2.7, 5.6.
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
    """What the counters of an archive are known by."""
    return _KEY.pack(archive_id)


def suffix(archive_id: int) -> str:
    """What their labels end with."""
    return f" - archiveId={archive_id}"


def require_unique(client: Aeron, archive_id: int) -> None:
    """Raise ConfigurationError where another archive of this id is at the same driver."""
    for counter in client.counters:
        if counter.type_id == CONTROL_SESSIONS and counter.key[: _KEY.size] == key(archive_id):
            raise ConfigurationError(
                f"AERON_ARCHIVE_ID is {archive_id}, but an archive of that id is at this driver"
            )


@dataclass(frozen=True, slots=True)
class TransferCounters:
    """How long an agent's reads or writes take, and how much they come to."""

    clock: Clock
    max_time: Counter
    total_bytes: Counter
    total_time: Counter

    def begin(self) -> int:
        """Something is about to be moved. Returns the time for `end`."""
        return self.clock.now_ns()

    def end(self, began_ns: int, byte_count: int) -> None:
        """So much was moved by one call; of one agent's thread."""
        duration_ns = self.clock.now_ns() - began_ns
        self.max_time.set(max(self.max_time.get(), duration_ns))
        self.total_bytes.set(self.total_bytes.get() + byte_count)
        self.total_time.set(self.total_time.get() + duration_ns)


class ArchiveCounters:
    """The counters, allocated."""

    def __init__(self, client: Aeron, archive_id: int, clock: Clock) -> None:
        """Raises RegistrationError."""
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
        """One more of this archive's."""
        made = self._client.add_counter(
            type_id, key(self._archive_id), label + suffix(self._archive_id)
        )
        self._added.append(made)
        return made

    def close(self) -> None:
        """Give all of them back now; the driver takes its time about those of a closed client."""
        for counter in self._added:
            counter.close()
