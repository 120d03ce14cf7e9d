"""A program controls the applications, links and drivers of a lab of containers."""

import os
import time
from pathlib import Path

import pytest
import yaml

from tests.docker import test_applications_in_containers as applications
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.lab import LabError, open_lab
from windtunnel.harness.orchestrate.labs import privileges

CHANNEL, STREAM = applications.CHANNEL, applications.STREAM
own_image = applications.own_image
pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
PUBLISHER = """
import os, sys, time, zlib
from windtunnel.driver.client import Aeron
with Aeron() as aeron:
    publication = aeron.add_exclusive_publication(os.environ["CHANNEL"], 1001)
    for number in range(1500):
        message = b"message %d " % number + b"x" * (number * 37 % 1000)
        while publication.offer(message) < 0:
            time.sleep(0.001)
        print("WT SENT", number, zlib.crc32(message))
        time.sleep(0.002)
    publication.close()
    time.sleep(0.5)
"""
READER = """
import os, sys, time, zlib
from windtunnel.driver.client import Aeron
count = 0
def take(payload, header):
    global count
    print("WT GOT", count, zlib.crc32(bytes(payload)))
    count += 1
with Aeron() as aeron:
    subscription = aeron.add_subscription(os.environ["CHANNEL"], 1001)
    print("reader ready")
    while count < 1500:
        if not subscription.poll(take):
            time.sleep(0.001)
"""


@pytest.mark.full
def test_a_lab_changes_while_applications_of_images_run(own_image: str, tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "publisher.py").write_text(PUBLISHER)
    env = {"CHANNEL": CHANNEL}
    with open_lab(
        fidelity="compose", delay="2ms", observe=[STREAM], out=tmp_path / "runs", folder=tmp_path
    ) as lab:
        reader = lab.start("b", ["python", "reader.py"], env=env, ready="reader ready")
        publisher = lab.start("a", ["python", "publisher.py"], env=env, name="publisher")
        lab.wait_for_position("b", stream=1001, at_least=20_000)
        lab.link("a-b").impair(loss="5%")
        with lab.link("a-b").partitioned():
            time.sleep(1)
        with reader.paused():
            time.sleep(0.5)
        publisher.exited(within=120)
        reader.exited(within=120)
        counter = lab.start("b", image=own_image, name="counter")
        counter.exited(within=60)
        assert "count 3" in counter.log_text()
        with pytest.raises(LabError, match="there is no image 'windtunnel-test/none:1'"):
            lab.start("a", image="windtunnel-test/none:1")
        folder = RunDir(lab.run_dir)
    found = {each["name"]: each["outcome"] for each in lab.verdict.checks}
    assert found["reported_once_in_order"] == "PASS"
    assert found["observed_data_arrived"] == "PASS"
    # The application without an image is the only one that did not run.
    assert lab.verdict.outcome == "INCONCLUSIVE"
    assert "there is no image" in lab.verdict.reason
    scenario = yaml.safe_load(folder.scenario.read_text())
    assert scenario["fidelity"] == ["compose"]
    images = [each.get("image") for each in scenario["applications"]]
    assert images == [None, None, own_image, "windtunnel-test/none:1"]
    assert os.listdir(folder.host("b").application("counter").folder) == []
