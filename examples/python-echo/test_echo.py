"""Tests the service under loss, and through a partition: `pytest examples/python-echo`."""

import time

import pytest

CHANNELS = {
    "REQUESTS": "aeron:udp?endpoint=${b}:24325",
    "RESPONSES": "aeron:udp?endpoint=${a}:24326",
}
STREAMS = [
    {"id": "requests", "stream": 1001, "from": "a", "to": "b", "channel": CHANNELS["REQUESTS"]},
    {"id": "responses", "stream": 1002, "from": "b", "to": "a", "channel": CHANNELS["RESPONSES"]},
]


@pytest.mark.windtunnel("python-echo.yaml", allow_commands=True)
def test_every_request_is_answered_despite_losses(windtunnel_run):
    assert windtunnel_run.verdict.passed


def test_every_request_is_answered_after_a_partition(windtunnel):
    with windtunnel.lab(link="a-b", loss="2%", delay="2ms", observe=STREAMS) as lab:
        lab.start("b", ["python", "service.py"], env=CHANNELS, ready="service ready")
        client = lab.start("a", ["python", "client.py"], env=CHANNELS, name="client")
        lab.wait_for_position("b", stream=1001, at_least=10_000)
        with lab.link("a-b").partitioned():
            time.sleep(2)
        client.exited(within=60)
    lab.verdict.assert_passed()
