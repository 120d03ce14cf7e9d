"""Tokens that allow a client to request a replay on an additional request publication.

A token is valid for one recording and one session. It expires after a while, or when its session
ends.
Source: archive-protocol 3.8.
"""

from collections.abc import Callable
from dataclasses import dataclass

from windtunnel.driver.archive.control.control_session import ControlSession
from windtunnel.driver.archive.protocol.codes import NULL_VALUE


@dataclass(frozen=True, slots=True)
class _Token:
    session: ControlSession
    recording_id: int
    deadline_ns: int


class ReplayTokens:
    """The valid replay tokens of an archive."""

    def __init__(self, lifetime_ns: int, next_number: Callable[[], int]) -> None:
        """Create an empty set of tokens. `next_number` must return unpredictable 64-bit
        integers.
        """
        self._lifetime_ns, self._next_number = lifetime_ns, next_number
        self._tokens: dict[int, _Token] = {}

    def issue(self, session: ControlSession, recording_id: int, now_ns: int) -> int:
        """Create and return a token for one recording and control session."""
        token = NULL_VALUE
        while token == NULL_VALUE or token in self._tokens:
            token = self._next_number()
        self._tokens[token] = _Token(session, recording_id, now_ns + self._lifetime_ns)
        return token

    def session_of(self, token: int, recording_id: int, now_ns: int) -> ControlSession | None:
        """Return the control session for which a token was issued, or None if the token is not
        valid for the recording.
        """
        entry = self._tokens.get(token)
        if entry is None or entry.recording_id != recording_id or now_ns > entry.deadline_ns:
            return None
        return entry.session

    def expire(self, now_ns: int) -> None:
        """Remove expired tokens, and tokens of control sessions that have ended."""
        if self._tokens:
            self._tokens = {
                number: token for number, token in self._tokens.items()
                if now_ns <= token.deadline_ns and not token.session.is_done
            }  # fmt: skip
