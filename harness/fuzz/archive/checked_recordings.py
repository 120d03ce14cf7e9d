"""A regular client of an archive: records streams, and checks that nothing of them is lost.

    offer --> archive --> acknowledged position --> kill --> stop position, replay: every message

A recording's content follows from its number, so that it can be checked by any later client. A
message is acknowledged if the archive has reported a recorded position at or after its end.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from windtunnel.driver.archive.client.archive import AeronArchive
from windtunnel.driver.archive.client.context import ArchiveContext
from windtunnel.driver.archive.client.errors import ArchiveError
from windtunnel.driver.archive.protocol.codes import SourceLocation
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client import Aeron, FragmentAssembler
from windtunnel.harness.fuzz.finding import Violation

TIMEOUT_S = 10.0
"""Time within which every request of the checked client must be answered."""
REPLAY_S = 30.0
FIRST_STREAM, FIRST_REPLAY_STREAM = 1 << 20, 1 << 21
LENGTH_MAX = 3_000


@dataclass
class Recording:
    """One recorded stream: what was published, and what the archive has acknowledged."""

    number: int
    channel: str
    recording_id: int = -1
    acknowledged: int = 0
    ends: list[int] = field(default_factory=list)
    """The position at which each published message ends."""
    published: int = 0
    """The position of the publication when it was closed. Padding may precede it."""

    @property
    def stream_id(self) -> int:
        return FIRST_STREAM + self.number

    def message(self, index: int) -> bytes:
        """Return the content of a message."""
        chance = random.Random(f"{self.number}/{index}")
        return chance.randbytes(chance.randrange(1, LENGTH_MAX if index % 8 == 0 else 400))


class CheckedClient:
    """A regular client with a control session."""

    def __init__(self, aeron: Aeron, request_channel: str, response_channel: str) -> None:
        self._aeron = aeron
        self.slowest_s = 0.0
        self._replays = 0
        context = ArchiveContext(
            control_request_channel=request_channel, control_response_channel=response_channel,
            message_timeout_ns=int(TIMEOUT_S * 1e9), client_name="checked",
        )  # fmt: skip
        self._archive: AeronArchive = self.timed(
            "connect", lambda: AeronArchive.connect(aeron, context)
        )
        self._live: list[tuple[Recording, Any]] = []

    @property
    def control_session_id(self) -> int:
        return self._archive.session.control_session_id

    def timed(self, what: str, call: Callable[[], Any]) -> Any:
        """Make a request. Raises Violation if it fails or is answered too late."""
        began_s = time.monotonic()
        try:
            return call()
        except (ArchiveError, DriverError) as error:
            raise Violation(f"the checked client could not {what}: {error}") from error
        finally:
            self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)

    def record(self, recording: Recording) -> None:
        """Start to record a new stream."""
        self.timed(
            "start a recording",
            lambda: self._archive.start_recording(
                recording.channel, recording.stream_id, SourceLocation.LOCAL
            ),
        )
        publication = self._aeron.add_exclusive_publication(recording.channel, recording.stream_id)
        self._live.append((recording, publication))
        deadline_s = time.monotonic() + TIMEOUT_S
        found: list[RecordingDescriptor] = []
        while not found:
            self.timed(
                "list recordings",
                lambda: self._archive.list_recordings_for_uri(
                    0, 1, "aeron", recording.stream_id, found.append
                ),
            )
            if time.monotonic() > deadline_s:
                raise Violation(f"no recording of a new stream within {TIMEOUT_S:g} s")
        recording.recording_id = found[0].recording_id

    def publish(self, count: int) -> None:
        """Offer up to `count` messages on each recorded stream, as far as flow control permits."""
        for recording, publication in self._live:
            for _ in range(count):
                position = publication.offer(recording.message(len(recording.ends)))
                if position <= 0:
                    break
                recording.ends.append(position)

    def acknowledge(self) -> None:
        """Query the recorded positions."""
        for recording, _ in self._live:
            position = self.timed(
                "query a position",
                lambda recording=recording: self._archive.recording_position(  # type: ignore[misc]
                    recording.recording_id
                ),
            )
            if position < recording.acknowledged:
                raise Violation(
                    f"the recorded position of recording {recording.recording_id} went from "
                    f"{recording.acknowledged} to {position}"
                )
            recording.acknowledged = position

    def settle(self) -> None:
        """Wait until everything that was published is recorded. Raises Violation on timeout."""
        deadline_s = time.monotonic() + REPLAY_S
        while any(item.ends and item.acknowledged < item.ends[-1] for item, _ in self._live):
            self.acknowledge()
            if time.monotonic() > deadline_s:
                raise Violation(f"published messages were not recorded within {REPLAY_S:g} s")
            time.sleep(0.001)

    def check(self, recording: Recording) -> None:
        """Check a recording of an earlier life of the archive: its stop position and all bytes."""
        found: list[RecordingDescriptor] = []
        self.timed(
            "list a recording",
            lambda: self._archive.list_recording(recording.recording_id, found.append),
        )
        name = f"recording {recording.recording_id}"
        if not found:
            raise Violation(f"{name}, acknowledged to {recording.acknowledged}, is not listed")
        stop = found[0].stop_position
        if not recording.acknowledged <= stop <= recording.published:
            raise Violation(
                f"{name}: expected a stop position from {recording.acknowledged} (acknowledged) "
                f"to {recording.published} (published), found {stop}"
            )
        count = sum(end <= stop for end in recording.ends)
        if stop > 0:
            self._check_replay(recording, count, stop)

    def _check_replay(self, recording: Recording, count: int, stop: int) -> None:
        name, received = f"recording {recording.recording_id}", 0

        def on_message(payload: memoryview, header: Any) -> None:
            nonlocal received
            if bytes(payload) != recording.message(received):
                raise Violation(f"{name}: message {received} before {header.position} is wrong")
            received += 1

        self._replays += 1
        subscription = self.timed(
            "replay",
            lambda: self._archive.replay(
                recording.recording_id, "aeron:ipc", FIRST_REPLAY_STREAM + self._replays
            ),
        )
        assembler = FragmentAssembler(on_message)
        deadline_s = time.monotonic() + REPLAY_S
        try:
            while received < count:
                if not subscription.poll(assembler, 50):
                    time.sleep(0.0005)
                if time.monotonic() > deadline_s:
                    raise Violation(
                        f"{name}: a replay to {stop} delivered {received} of {count} messages "
                        f"within {REPLAY_S:g} s"
                    )
        finally:
            subscription.close()

    def close(self) -> None:
        """Forget the session without a word: the archive may be dead."""
        for recording, publication in self._live:
            recording.published = publication.position
            publication.close()
        self._live = []
