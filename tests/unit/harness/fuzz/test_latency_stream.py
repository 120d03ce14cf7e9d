"""The measured messages of a stream, and their latencies."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.fuzz import latency_stream
from windtunnel.harness.fuzz.finding import Violation
from windtunnel.harness.fuzz.latency_stream import SESSION_ID, LatencyStream

MS = 1_000_000
ROUND_S = 0.01
HEADER = SimpleNamespace(session_id=SESSION_ID)


class Path:
    """A publication and a subscription. Messages arrive at given times of the test's clock."""

    def __init__(self, clock, delay_ns=0, blocked_until_ns=0, forged=()):
        self._clock, self._delay_ns, self._forged = clock, delay_ns, list(forged)
        self._blocked_until_ns = blocked_until_ns
        self._messages = []

    def offer(self, message):
        if self._clock.now_ns < self._blocked_until_ns:
            return -2
        self._messages.append((self._clock.now_ns + self._delay_ns, message))
        return 64

    def poll(self, handler, limit):
        self._clock.now_ns += MS // 4
        while self._forged:
            handler(self._forged.pop(), SimpleNamespace(session_id=SESSION_ID + 1))
        while self._messages and self._messages[0][0] <= self._clock.now_ns:
            handler(memoryview(self._messages.pop(0)[1]), HEADER)


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(now_ns=1_000 * MS)
    time = SimpleNamespace(monotonic=lambda: now.now_ns / 1e9, monotonic_ns=lambda: now.now_ns)
    monkeypatch.setattr(latency_stream, "time", time)
    return now


def stream_on(publication, subscription):
    stream = LatencyStream.__new__(LatencyStream)
    stream._publication, stream._subscription, stream._samples = publication, subscription, []
    return stream


def measured(path, duration_s=ROUND_S):
    return stream_on(path, path).run(duration_s)


def test_measures_each_message_in_its_own_round(clock):
    """Messages that are in flight when the round ends are waited for."""
    samples = measured(Path(clock, delay_ns=5 * MS))
    assert len(samples) == 10
    assert all(5 * MS <= sample <= 6 * MS for sample in samples)


def test_measures_the_time_for_which_a_message_finds_no_space(clock):
    samples = measured(Path(clock, blocked_until_ns=clock.now_ns + 8 * MS))
    assert max(samples) >= 8 * MS


def test_measures_no_messages_of_forged_sessions(clock):
    forged = [memoryview(b""), memoryview(bytes(8))]
    assert max(measured(Path(clock, forged=forged))) < MS


def test_a_message_that_never_arrives_is_a_violation(clock):
    path = Path(clock, delay_ns=int(2e9 * latency_stream.JOIN_PATIENCE_S))
    with pytest.raises(Violation, match="10 of 10 messages did not arrive within 20 s"):
        measured(path)


def test_a_publication_without_space_is_a_violation(clock):
    path = Path(clock, blocked_until_ns=clock.now_ns + 1_000 * MS)
    with pytest.raises(Violation, match="no message found space"):
        measured(path)


def test_a_driver_that_refuses_new_publications_has_violated_its_budget():
    """Aeron's C driver uses up its counter ids in a flood of sessions."""

    class Client:
        def add_exclusive_publication(self, channel, stream_id):
            raise RegistrationError(ErrorCode.GENERIC_ERROR, "Max counter id (65535) exceeded")

    stream = stream_on(None, None)
    stream._aeron, stream._channel = Client(), "aeron:ipc"
    with pytest.raises(Violation, match=r"refused a new publication .* \(65535\) exceeded"):
        stream.slowest_session()
