"""A replay token is valid for one session and recording, until it expires."""

import itertools
from types import SimpleNamespace

from windtunnel.driver.archive.control.replay_tokens import ReplayTokens

LIFETIME_NS = 5_000


def tokens_from(*numbers):
    return ReplayTokens(LIFETIME_NS, itertools.chain(numbers, itertools.count(100)).__next__)


def session():
    return SimpleNamespace(is_done=False)


def test_a_token_is_valid_for_its_recording_until_it_expires():
    tokens, owner = tokens_from(), session()
    token = tokens.issue(owner, 3, 1_000)
    for _ in range(2):
        assert tokens.session_of(token, 3, 1_000 + LIFETIME_NS) is owner
    assert tokens.session_of(token, 4, 1_000) is None
    assert tokens.session_of(token + 1, 3, 1_000) is None
    assert tokens.session_of(token, 3, 1_001 + LIFETIME_NS) is None


def test_tokens_are_unique_and_never_null():
    tokens = tokens_from(-1, 7, 7, -1, 8)
    assert tokens.issue(session(), 0, 0) == 7
    assert tokens.issue(session(), 0, 0) == 8


def test_tokens_expire_with_their_session_or_lifetime():
    tokens, owner, other = tokens_from(1, 2), session(), session()
    first, second = tokens.issue(owner, 0, 0), tokens.issue(other, 0, 3_000)
    owner.is_done = True
    tokens.expire(10)
    assert tokens.session_of(first, 0, 10) is None
    assert tokens.session_of(second, 0, 10) is other
    tokens.expire(3_001 + LIFETIME_NS)
    assert tokens.session_of(second, 0, 10) is None
