"""Tests the service under loss, and through failures: `pytest examples/python-echo`."""

import time

import pytest

CHANNELS = {
    "REQUESTS": "aeron:udp?endpoint=${b}:24325|term-length=64k",
    "RESPONSES": "aeron:udp?endpoint=${a}:24326|term-length=64k",
}
STREAMS = [
    {"id": "requests", "stream": 1001, "from": "a", "to": "b", "channel": CHANNELS["REQUESTS"]},
    {"id": "responses", "stream": 1002, "from": "b", "to": "a", "channel": CHANNELS["RESPONSES"]},
]
SERVICE, CLIENT = ["python", "service.py"], ["python", "client.py"]


@pytest.mark.windtunnel("python-echo.yaml", allow_commands=True)
def test_every_request_is_answered_despite_losses(windtunnel_run):
    assert windtunnel_run.verdict.passed


def test_every_request_is_answered_after_a_partition(windtunnel, tmp_path):
    env = {**CHANNELS, "EXECUTED": str(tmp_path / "executed")}
    with windtunnel.lab(link="a-b", loss="2%", delay="2ms", observe=STREAMS) as lab:
        lab.start("b", SERVICE, env=env, ready="service ready")
        client = lab.start("a", CLIENT, env=env, name="client")
        lab.wait_for_position("b", stream=1001, at_least=10_000)
        with lab.link("a-b").partitioned():
            time.sleep(2)
        client.exited(within=60)
    lab.verdict.assert_passed()


def test_every_request_is_executed_once_although_the_service_is_killed(windtunnel, tmp_path):
    env = {**CHANNELS, "EXECUTED": str(tmp_path / "executed")}
    timeouts = {"client_liveness": "5s"}
    with windtunnel.lab(link="a-b", delay="2ms", observe=STREAMS, timeouts=timeouts) as lab:
        service = lab.start("b", SERVICE, env=env, ready="service ready", name="service")
        client = lab.start("a", CLIENT, env=env, name="client")
        lab.wait_for_position("b", stream=1001, at_least=10_000)
        with client.paused():
            wait_for_lines(service, "WT SENT", client.log_text().count("WT SENT"))
            service.kill()
            service.restart()
        client.exited(within=60)
    lab.verdict.assert_passed()


def wait_for_lines(application, text, count):
    """Wait until an application has logged a text a number of times."""
    deadline_s = time.monotonic() + 30
    while application.log_text().count(text) < count:
        assert time.monotonic() < deadline_s, f"{application.name} has not logged {text!r}"
        time.sleep(0.05)
