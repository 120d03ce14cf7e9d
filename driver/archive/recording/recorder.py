"""The recorder agent: runs the recording sessions, in the thread of its caller.

    conductor --add, stop--> [ inbox ] --> sessions --> [ ended ] --take_ended--> conductor

Conductor and recorder share only the two queues, so each may run in a thread of its own.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.client.errors import ClientTerminatedError

_Inbox = deque[tuple[RecordingSession, bool]]


class Recorder:
    """Runs the duty cycles of all recording sessions."""

    def __init__(self, on_turn: Callable[[int], object] = lambda now_ns: None) -> None:
        """`on_turn` is called with the time at the start of each duty cycle."""
        self._on_turn = on_turn
        self._sessions: list[RecordingSession] = []
        self._inbox: _Inbox = deque()
        self._ended: deque[RecordingSession] = deque()

    def add(self, session: RecordingSession) -> None:
        """Run a session from now on."""
        self._inbox.append((session, False))

    def stop(self, session: RecordingSession) -> None:
        """Stop a session; `take_ended` returns it like one that ended by itself."""
        self._inbox.append((session, True))

    def do_work(self, now_ns: int) -> int:
        """Record one block of each session. Returns an amount of work."""
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
        """Record one block; an unexpected error ends only this recording."""
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
        """Return a session that has ended, once; None if there is none."""
        return self._ended.popleft() if self._ended else None

    def close(self) -> None:
        """Stop every session; call it when no other thread runs the recorder."""
        for session, _ in self._inbox:
            if session not in self._sessions and not session.is_done:
                self._sessions.append(session)
        self._inbox.clear()
        for session in self._sessions:
            self._stop(session)
        self._ended.extend(self._sessions)
        self._sessions = []
