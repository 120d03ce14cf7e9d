"""The recorder agent, which runs the recording sessions in the calling thread.

    conductor --add, stop--> [ inbox ] --> sessions --> [ ended ] --take_ended--> conductor

The conductor and the recorder share only the two queues, so they may run in separate threads.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.client.errors import ClientTerminatedError

_Inbox = deque[tuple[RecordingSession, bool]]


class Recorder:
    """Runs the duty cycles of all recording sessions."""

    def __init__(self, on_turn: Callable[[int], object] = lambda now_ns: None) -> None:
        """Create a recorder. At the start of each duty cycle, `on_turn` is called with the time."""
        self._on_turn = on_turn
        self._sessions: list[RecordingSession] = []
        self._inbox: _Inbox = deque()
        self._ended: deque[RecordingSession] = deque()

    def add(self, session: RecordingSession) -> None:
        """Add a recording session. It runs for the first time in the next duty cycle."""
        self._inbox.append((session, False))

    def stop(self, session: RecordingSession) -> None:
        """Stop a recording session. `take_ended` then returns it like any other session that has
        ended.
        """
        self._inbox.append((session, True))

    def do_work(self, now_ns: int) -> int:
        """Record one block for each recording session. Returns the amount of work done."""
        self._on_turn(now_ns)
        work_count = 0
        while self._inbox:
            session, is_over = self._inbox.popleft()
            work_count += 1
            if is_over:
                self._stop(session)
            else:
                self._sessions.append(session)
        has_ended = False
        for session in self._sessions:
            work_count += self._run(session)
            has_ended = has_ended or session.is_done
        if has_ended:
            self._ended.extend(session for session in self._sessions if session.is_done)
            self._sessions = [session for session in self._sessions if not session.is_done]
        return work_count

    def _run(self, session: RecordingSession) -> int:
        """Record one block of a recording session. An unexpected error ends only this session."""
        try:
            return session.do_work()
        except ClientTerminatedError:
            raise
        except Exception as error:
            session.fail(error)
            return 1

    def _stop(self, session: RecordingSession) -> None:
        try:
            session.stop()
        except Exception as error:
            session.fail(error)

    def take_ended(self) -> RecordingSession | None:
        """Remove and return a recording session that has ended, or None if no session has ended."""
        return self._ended.popleft() if self._ended else None

    def close(self) -> None:
        """Stop every recording session. Call this only when no other thread runs the recorder."""
        for session, _ in self._inbox:
            if session not in self._sessions and not session.is_done:
                self._sessions.append(session)
        self._inbox.clear()
        for session in self._sessions:
            self._stop(session)
        self._ended.extend(self._sessions)
        self._sessions = []
