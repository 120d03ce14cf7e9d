"""Aeron's own samples as observed applications, at 2 % loss and through a partition of 2 seconds.

Java's are in the jar that AERON_ALL_JAR names, those in C in the folder that SAMPLES_BIN names.
"""

import os
import shutil
import time
from pathlib import Path

import pytest

JAR = Path(os.environ.get("AERON_ALL_JAR", "not set")).absolute()
BIN = Path(os.environ.get("SAMPLES_BIN", "not set")).absolute()
CHANNEL = "aeron:udp?endpoint=${b}:24325"
STREAM = {"id": "sample", "stream": 1001, "from": "a", "to": "b", "channel": CHANNEL}
LAB = {"link": "a-b", "loss": "2%", "delay": "5ms", "observe": [STREAM]}
START_S = 60
JAVA = ["java", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "-cp", str(JAR)]
JAVA += [f"-Daeron.sample.channel={CHANNEL}", "-Daeron.sample.messages=8"]
JAVA += ["-Daeron.sample.lingerTimeout=3000"]
C = ["stdbuf", "-oL"]
"""Programs in C buffer their output by default: this makes them write each line."""

needs_jar = pytest.mark.skipif(
    not (JAR.is_file() and shutil.which("java")), reason="AERON_ALL_JAR names no jar, or no java"
)
needs_bin = pytest.mark.skipif(
    not (BIN / "rate_subscriber").is_file(), reason="SAMPLES_BIN names no folder of C samples"
)
drivers = pytest.mark.parametrize("driver", ["ours", "pyaeron"])
seeds = pytest.mark.parametrize("seed", range(1, 6))


def run_through_a_partition(lab, publisher, reader):
    time.sleep(2)
    with lab.link("a-b").partitioned():
        time.sleep(2)
    publisher.exited(within=120)
    time.sleep(1)
    reader.stop()


@needs_jar
@drivers
@seeds
def test_basic_publisher(windtunnel, driver, seed):
    with windtunnel.lab(**LAB, driver=driver, seed=seed) as lab:

        def sample(host, name, ready):
            command = [*JAVA, f"-Daeron.dir={lab.aeron_dir(host)}", f"io.aeron.samples.{name}"]
            return lab.start(host, command, name=name.lower(), ready=ready, within=START_S)

        reader = sample("b", "BasicSubscriber", "Subscribing to")
        publisher = sample("a", "BasicPublisher", "yay")
        run_through_a_partition(lab, publisher, reader)
    offered = publisher.log_text().count("yay!")
    assert offered == reader.log_text().count("Message to stream") > 0
    lab.verdict.assert_passed()


@needs_bin
@drivers
@seeds
def test_streaming_publisher(windtunnel, driver, seed):
    with windtunnel.lab(**LAB, driver=driver, seed=seed) as lab:
        read = [*C, BIN / "rate_subscriber", "-c", f"{CHANNEL}|rcv-wnd=64k", "-s", "1001"]
        reader = lab.start(
            "b", read, name="reader", ready="Subscription channel", stop_signal="INT"
        )
        send = [*C, BIN / "streaming_publisher", "-c", CHANNEL, "-s", "1001"]
        send += ["-m", "60000", "-L", "256", "-l", "3s"]
        publisher = lab.start("a", send, name="publisher", ready="Publication channel")
        run_through_a_partition(lab, publisher, reader)
    lab.verdict.assert_passed()
