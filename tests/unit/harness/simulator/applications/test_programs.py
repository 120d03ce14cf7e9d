"""Paused and killed programs are not stepped; a successor gets the next number."""

import pytest

from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.errors import RegistrationError
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.harness.simulator.applications.programs import KILLED, Application, next_name
from windtunnel.harness.simulator.support import Unsupported


class HostClient:
    def __init__(self, number):
        self.client, self.is_paused = f"client {number}", False


class Host:
    name, is_running = "b", True

    def __init__(self):
        self.clients, self.dropped = [], []

    def connect(self):
        self.clients.append(HostClient(len(self.clients)))
        return self.clients[-1]

    def drop_client(self, client):
        self.dropped.append(client)


class Work:
    role, is_done = "subscriber", False

    class traffic:
        id = "ticks"

    def __init__(self, connect):
        self.connect, self.steps, self.error, self.closed = connect, 0, None, []

    def step(self):
        self.steps += 1
        if self.error is not None:
            raise self.error

    def close(self, error):
        self.closed.append(error)


@pytest.fixture
def host():
    return Host()


@pytest.mark.parametrize(
    ("name", "following"),
    [("b/driver", "b/driver#2"), ("b/driver#2", "b/driver#3"), ("b/x#9", "b/x#10")],
)  # fmt: skip
def test_successors_are_numbered(name, following):
    assert next_name(name) == following


def test_a_client_is_created_only_if_the_driver_is_running(host):
    made = Application(host, Work)
    host.is_running = False
    assert made.work.connect() is None
    host.is_running = True
    assert made.work.connect() == "client 0"
    assert made.work.connect() == "client 1"
    assert host.dropped == host.clients[:1]


def test_a_paused_program_is_not_stepped_and_neither_is_its_client(host):
    made = Application(host, Work)
    made.work.connect()
    made.pause()
    made.step()
    assert (made.work.steps, host.clients[0].is_paused) == (0, True)
    made.resume()
    made.step()
    assert (made.work.steps, host.clients[0].is_paused) == (1, False)


def test_a_killed_program_leaves_nothing_and_is_replaced(host, tmp_path):
    made = Application(host, Work)
    made.work.connect()
    made.kill()
    made.step()
    made.close(tmp_path)
    assert (made.work.steps, made.work.closed) == (0, [])
    assert host.dropped == host.clients
    ended = made.exit("log")
    assert (ended.name, ended.exit_code, ended.asked) == ("b/subscriber-ticks", KILLED, True)
    following = made.successor()
    following.step()
    assert following.work is not made.work
    assert following.work.steps == 1
    assert following.name == "b/subscriber-ticks#2"


def test_an_error_ends_a_program_and_is_reported(host, tmp_path):
    made = Application(host, Work)
    made.work.error = DriverError("no more")
    made.step()
    made.step()
    assert made.work.steps == 1
    made.close(tmp_path)
    assert made.work.closed == ["no more"]
    ended = made.exit("log")
    assert (ended.exit_code, ended.asked, ended.last_log_line) == (1, False, "no more")


def test_a_program_that_is_running_at_the_end_was_asked_to_end(host):
    ended = Application(host, Work).exit("log")
    assert (ended.exit_code, ended.asked) == (None, True)


def test_a_feature_that_the_driver_lacks_is_unsupported(host):
    made = Application(host, Work)
    made.work.error = RegistrationError(ErrorCode.NOT_SUPPORTED, "no such thing", 1)
    with pytest.raises(Unsupported, match="no such thing"):
        made.step()
