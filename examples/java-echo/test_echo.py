"""Tests the service under loss, and through failures: `pytest examples/java-echo`.

Java reads the variable CLASSPATH. The tests set it to AERON_ALL_JAR, and are skipped without it.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

JAR = os.environ.get("AERON_ALL_JAR", "")
CHANNELS = {
    "REQUESTS": "aeron:udp?endpoint=${b}:24325|term-length=64k",
    "RESPONSES": "aeron:udp?endpoint=${a}:24326|term-length=64k",
}
STREAMS = [
    {"id": "requests", "stream": 1001, "from": "a", "to": "b", "channel": CHANNELS["REQUESTS"]},
    {"id": "responses", "stream": 1002, "from": "b", "to": "a", "channel": CHANNELS["RESPONSES"]},
]
JAVA = ["java", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"]
SERVICE, CLIENT = [*JAVA, "Service.java"], [*JAVA, "Client.java"]
START_S = 60
"""Time to compile and start a program."""


def why_not() -> str:
    """Return the reason why the programs cannot run, or an empty string."""
    if not JAR:
        return "AERON_ALL_JAR is not set: expected the path of Aeron's aeron-all jar"
    if not Path(JAR).is_file():
        return f"AERON_ALL_JAR is {JAR}: expected the path of a jar, found no such file"
    return "" if shutil.which("javac") else "Java is not installed: found no javac on the PATH"


if why_not():
    pytest.skip(why_not(), allow_module_level=True)
os.environ["CLASSPATH"] = str(Path(JAR).resolve())


@pytest.mark.windtunnel("java-echo.yaml", allow_commands=True)
def test_every_request_is_answered_despite_losses(windtunnel_run):
    assert windtunnel_run.verdict.passed


def test_every_request_is_answered_after_a_partition(windtunnel, tmp_path):
    env = {**CHANNELS, "EXECUTED": str(tmp_path / "executed")}
    with windtunnel.lab(link="a-b", loss="2%", delay="2ms", observe=STREAMS) as lab:
        lab.start("b", SERVICE, env=env, ready="service ready", within=START_S)
        client = lab.start("a", CLIENT, env=env, name="client")
        lab.wait_for_position("b", stream=1001, at_least=10_000, within=START_S)
        with lab.link("a-b").partitioned():
            time.sleep(2)
        client.exited(within=60)
    lab.verdict.assert_passed()


def test_every_request_is_executed_once_although_the_service_is_killed(windtunnel, tmp_path):
    env = {**CHANNELS, "EXECUTED": str(tmp_path / "executed")}
    timeouts = {"client_liveness": "5s"}
    with windtunnel.lab(link="a-b", delay="2ms", observe=STREAMS, timeouts=timeouts) as lab:
        service = lab.start(
            "b", SERVICE, env=env, ready="service ready", within=START_S, name="service"
        )
        client = lab.start("a", CLIENT, env=env, name="client")
        lab.wait_for_position("b", stream=1001, at_least=10_000, within=START_S)
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
