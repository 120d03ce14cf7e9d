"""The agent that records: all sessions in turn, whoever's thread it runs in.

    conductor --add, stop--> [ inbox ] --> sessions --> [ ended ] --take_ended--> conductor

The two queues are all that conductor and recorder share, so each may have a thread of its own.
"""

from collections import deque
from collections.abc import Callable

from windtunnel.driver.archive.recording.recording_session import RecordingSession
from windtunnel.driver.client.errors import ClientTerminatedError

_Inbox = deque[tuple[RecordingSession, bool]]


class Recorder:
    """Takes turns with every session."""

    def __init__(self, on_turn: Callable[[int], object] = lambda now_ns: None) -> None:
        """`on_turn` is told the time at each turn."""
        self._on_turn = on_turn
        self._sessions: list[RecordingSession] = []
        self._inbox: _Inbox = deque()
        self._ended: deque[RecordingSession] = deque()

    def add(self, session: RecordingSession) -> None:
        """Record that from now on."""
        self._inbox.append((session, False))

    def stop(self, session: RecordingSession) -> None:
        """End it; it comes back by `take_ended` like one that ended by itself."""
        self._inbox.append((session, True))

    def do_work(self, now_ns: int) -> int:
        """One block of each session. Returns an amount of work."""
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
            work_count += self._turn(session)
            has_ended = has_ended or session.is_done
        if has_ended:
            self._ended.extend(session for session in self._sessions if session.is_done)
            self._sessions = [session for session in self._sessions if not session.is_done]
        return work_count

    def _turn(self, session: RecordingSession) -> int:
        """One block; an error that nobody foresaw ends this recording alone."""
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
        """One session that has ended, once."""
        return self._ended.popleft() if self._ended else None

    def close(self) -> None:
        """End every session; nobody else takes turns any more."""
        for session, _ in self._inbox:
            if session not in self._sessions and not session.is_done:
                self._sessions.append(session)
        self._inbox.clear()
        for session in self._sessions:
            self._stop(session)
        self._ended.extend(self._sessions)
        self._sessions = []
