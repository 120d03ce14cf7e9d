"""Receives the replay of a recording for a persistent subscription.

This module does not access the live stream. The persistent subscription switches between the replay
and the live stream.
"""

from windtunnel.driver.archive.client.control_session import ControlSession
from windtunnel.driver.archive.client.errors import ArchiveTimeoutError
from windtunnel.driver.archive.client.operations import listing
from windtunnel.driver.archive.client.persistent_setup import PersistentSetup, StartedReplay
from windtunnel.driver.archive.client.turns import Turns, advance
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.base.clock import Clock
from windtunnel.driver.client import Image


class ReplayStream:
    """The replay that a persistent subscription reads. `request` asks the archive for it."""

    def __init__(self, setup: PersistentSetup, clock: Clock, timeout_ns: int) -> None:
        self._setup, self._clock, self._timeout_ns = setup, clock, timeout_ns
        self._request: Turns[StartedReplay] | None = None
        self._started: StartedReplay | None = None
        self._image_deadline_ns = 0
        self._position_request: Turns[int] | None = None
        self._max_recorded: int | None = None

    @property
    def is_requested(self) -> bool:
        """Return whether a replay has been requested and has not started."""
        return self._request is not None

    def request(self, session: ControlSession, position: int) -> None:
        """Request a replay from the given position, without waiting for the response."""
        self._request = self._setup.replay(session, position)

    def try_start(self) -> bool:
        """Take one step towards starting the requested replay. Returns whether it has started."""
        assert self._request is not None
        is_done, started = advance(self._request)
        if is_done:
            self._request, self._started = None, started
            self._image_deadline_ns = self._clock.now_ns() + self._timeout_ns
        return is_done

    def image(self) -> Image | None:
        """Return the replay's image, or None until it arrives. Raises ArchiveTimeoutError if it is
        overdue.
        """
        assert self._started is not None
        image = self._started.image
        if image is None and self._clock.now_ns() > self._image_deadline_ns:
            raise ArchiveTimeoutError(
                "persistent subscription: timed out waiting for the image of the replay"
            )
        return image

    def is_caught_up(
        self, session: ControlSession, recording: RecordingDescriptor, position: int
    ) -> bool:
        """Return whether a position is close to the recorded position. Requests the recorded
        position if needed.
        """
        if self._position_request is None:
            if self._max_recorded is not None and position < self._max_recorded:
                return False
            self._position_request = listing.max_recorded_position(session, recording.recording_id)
        is_done, found = advance(self._position_request)
        if not is_done or found is None:
            return False
        self._position_request, self._max_recorded = None, found
        return position >= found - recording.term_buffer_length // 4

    def forget_recorded_position(self) -> None:
        """Discard the recorded position, so that `is_caught_up` requests it again."""
        self._max_recorded = None

    def close(self) -> None:
        """Cancel the requests, and stop the replay."""
        for turns in (self._request, self._position_request):
            if turns is not None:
                turns.close()
        self._request = self._position_request = None
        if self._started is not None:
            self._started.close()
        self._started = None
