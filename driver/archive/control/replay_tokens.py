"""Tokens that allow a replay to be requested from another publication than the session's own.

A token is valid for one recording and one session; it expires after a while or with its session.
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
    """The valid tokens of an archive."""

    def __init__(self, lifetime_ns: int, next_number: Callable[[], int]) -> None:
        """`next_number` returns unpredictable 64-bit numbers."""
        self._lifetime_ns, self._next_number = lifetime_ns, next_number
        self._tokens: dict[int, _Token] = {}

    def issue(self, session: ControlSession, recording_id: int, now_ns: int) -> int:
        """Create a token."""
        token = NULL_VALUE
        while token == NULL_VALUE or token in self._tokens:
            token = self._next_number()
        self._tokens[token] = _Token(session, recording_id, now_ns + self._lifetime_ns)
        return token

    def session_of(self, token: int, recording_id: int, now_ns: int) -> ControlSession | None:
        """Return the session of a token, if the token is valid for that recording."""
        entry = self._tokens.get(token)
        if entry is None or entry.recording_id != recording_id or now_ns > entry.deadline_ns:
            return None
        return entry.session

    def expire(self, now_ns: int) -> None:
        """Remove expired tokens, and tokens whose session has ended."""
        if self._tokens:
            self._tokens = {
                number: token for number, token in self._tokens.items()
                if now_ns <= token.deadline_ns and not token.session.is_done
            }  # fmt: skip
