"""Commands and their responses: taken once, timed out, abandoned, undone when they are late."""

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.conductor import registrations as module
from windtunnel.driver.client.conductor.registrations import Registration, Registrations
from windtunnel.driver.client.errors import ClientError, CommandTimeoutError, RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess

ID, OTHER = 7, 8
DEADLINE_NS, TIMEOUT_MS = 1_000, 10


class RegistrationTable:
    def __init__(self):
        self.errors, self.undone = [], []
        self.all = Registrations(self.errors.append)

    def add(self, correlation_id=ID, complete=lambda response: response, *, is_collected=True):
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
def table():
    return RegistrationTable()


def test_a_response_is_completed_and_taken_once(table):
    table.add(complete=lambda response: response.correlation_id * 2)
    assert table.all.take(ID) is None
    assert table.all.is_active(ID)
    assert table.all.has_active
    table.succeed(OTHER)
    assert table.all.is_active(ID)
    table.succeed()
    assert not table.all.is_active(ID)
    assert not table.all.has_active
    assert table.all.take(ID).value == 2 * ID
    assert table.all.take(ID) is None
    assert table.errors == table.undone == []


def test_an_error_response_has_code_and_command(table):
    table.add()
    table.refuse()
    error = table.all.take(ID).error
    assert isinstance(error, RegistrationError)
    assert (error.code, error.correlation_id) == (ErrorCode.INVALID_CHANNEL, ID)
    assert table.undone == []


def test_an_error_that_is_not_collected_is_reported(table):
    table.add(is_collected=False)
    table.refuse()
    assert [error.correlation_id for error in table.errors] == [ID]
    assert table.all.find(ID) is None
    table.add(OTHER, is_collected=False)
    table.succeed(OTHER)
    assert len(table.errors) == 1
    assert table.all.find(OTHER) is None


def test_a_success_that_cannot_be_completed_is_undone(table):
    def complete(response):
        raise StorageError("no such log")

    table.add(complete=complete)
    table.succeed()
    error = table.all.take(ID).error
    assert isinstance(error, ClientError)
    assert "no such log" in str(error)
    assert table.undone == [ID]


def test_a_late_success_is_undone_and_a_late_error_is_not(table):
    for correlation_id in (ID, OTHER):
        table.add(correlation_id)
    table.all.on_timer(DEADLINE_NS, TIMEOUT_MS)
    assert table.all.is_active(ID)
    table.all.on_timer(DEADLINE_NS + 1, TIMEOUT_MS)
    assert isinstance(table.all.take(ID).error, CommandTimeoutError)
    assert table.undone == []
    table.succeed(ID)
    table.refuse(OTHER)
    table.succeed(ID)
    assert table.undone == [ID]


def test_an_abandoned_command_is_undone_when_its_response_arrives(table):
    table.add()
    table.all.abandon(ID)
    table.all.abandon(OTHER)
    assert table.all.find(ID) is None
    table.succeed()
    assert table.undone == [ID]


def test_an_unresponsive_driver_does_not_fill_the_memory(table, monkeypatch):
    monkeypatch.setattr(module, "ABANDONED_MAX", 3)
    for correlation_id in range(5):
        table.add(correlation_id)
        table.all.abandon(correlation_id)
    for correlation_id in range(5):
        table.succeed(correlation_id)
    assert table.undone == [2, 3, 4]
