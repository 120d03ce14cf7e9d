"""Commands and their answers: taken once, timed out, abandoned, undone when they come too late."""

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.conductor import registrations as module
from windtunnel.driver.client.conductor.registrations import Registration, Registrations
from windtunnel.driver.client.errors import ClientError, CommandTimeoutError, RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess

ID, OTHER = 7, 8
DEADLINE_NS, TIMEOUT_MS = 1_000, 10


class Desk:
    def __init__(self):
        self.errors, self.undone = [], []
        self.all = Registrations(self.errors.append)

    def add(self, correlation_id=ID, complete=lambda answer: answer, *, is_collected=True):
        self.all.add(
            Registration(
                correlation_id, DEADLINE_NS, complete,
                lambda: self.undone.append(correlation_id), is_collected,
            )
        )  # fmt: skip

    def refuse(self, correlation_id=ID):
        refusal = ErrorResponse(correlation_id, ErrorCode.INVALID_CHANNEL, "bad")
        self.all.on_response(correlation_id, refusal)

    def succeed(self, correlation_id=ID):
        self.all.on_response(correlation_id, OperationSuccess(correlation_id))


@pytest.fixture
def desk():
    return Desk()


def test_an_answer_is_made_into_a_value_and_taken_once(desk):
    desk.add(complete=lambda answer: answer.correlation_id * 2)
    assert desk.all.take(ID) is None
    assert desk.all.is_active(ID)
    assert desk.all.has_active
    desk.succeed(OTHER)
    assert desk.all.is_active(ID)
    desk.succeed()
    assert not desk.all.is_active(ID)
    assert not desk.all.has_active
    assert desk.all.take(ID).value == 2 * ID
    assert desk.all.take(ID) is None
    assert desk.errors == desk.undone == []


def test_a_refusal_carries_code_and_command(desk):
    desk.add()
    desk.refuse()
    error = desk.all.take(ID).error
    assert isinstance(error, RegistrationError)
    assert (error.code, error.correlation_id) == (ErrorCode.INVALID_CHANNEL, ID)
    assert desk.undone == []


def test_a_refusal_that_nobody_collects_is_reported(desk):
    desk.add(is_collected=False)
    desk.refuse()
    assert [error.correlation_id for error in desk.errors] == [ID]
    assert desk.all.find(ID) is None
    desk.add(OTHER, is_collected=False)
    desk.succeed(OTHER)
    assert len(desk.errors) == 1
    assert desk.all.find(OTHER) is None


def test_a_success_that_we_cannot_use_is_undone(desk):
    def complete(answer):
        raise StorageError("no such log")

    desk.add(complete=complete)
    desk.succeed()
    error = desk.all.take(ID).error
    assert isinstance(error, ClientError)
    assert "no such log" in str(error)
    assert desk.undone == [ID]


def test_a_late_answer_is_undone_and_a_late_refusal_is_not(desk):
    for correlation_id in (ID, OTHER):
        desk.add(correlation_id)
    desk.all.on_timer(DEADLINE_NS, TIMEOUT_MS)
    assert desk.all.is_active(ID)
    desk.all.on_timer(DEADLINE_NS + 1, TIMEOUT_MS)
    assert isinstance(desk.all.take(ID).error, CommandTimeoutError)
    assert desk.undone == []
    desk.succeed(ID)
    desk.refuse(OTHER)
    desk.succeed(ID)
    assert desk.undone == [ID]


def test_what_is_abandoned_is_undone_when_it_comes(desk):
    desk.add()
    desk.all.abandon(ID)
    desk.all.abandon(OTHER)
    assert desk.all.find(ID) is None
    desk.succeed()
    assert desk.undone == [ID]


def test_a_driver_that_never_answers_does_not_fill_our_memory(desk, monkeypatch):
    monkeypatch.setattr(module, "ABANDONED_MAX", 3)
    for correlation_id in range(5):
        desk.add(correlation_id)
        desk.all.abandon(correlation_id)
    for correlation_id in range(5):
        desk.succeed(correlation_id)
    assert desk.undone == [2, 3, 4]
