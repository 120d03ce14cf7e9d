"""The cluster of the Spark profile in compose.yaml computes the tables of the local engine."""

import json
import lzma
import os
import re
import subprocess
import sys

import pytest

from tests.golden.reader import GOLDEN
from windtunnel.harness.installation import ROOT as REPOSITORY

pytestmark = [pytest.mark.docker, pytest.mark.spark, pytest.mark.timeout(1800)]

RUN_TIMEOUT_S = 600
CAPTURE = "loss-reliable"
LOSSES = 57
"""Gaps in that capture, by the loss report of its receiver."""
WORKERS = 2


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Make the shared folder with an uncompressed golden capture, which can be split."""
    folder = tmp_path_factory.mktemp("captures")
    packed = GOLDEN / CAPTURE / "capture.pcap.xz"
    (folder / f"{CAPTURE}.pcap").write_bytes(lzma.decompress(packed.read_bytes()))
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def profile(compose, spark_image, captures):
    """Return the compose command with the profile; its project is removed afterwards."""
    name = f"windtunnel-spark-{os.getpid()}"
    command = [*compose, "--project-name", name, "--profile", "spark"]
    environment = {
        **os.environ, "WINDTUNNEL_CAPTURES": str(captures), "WINDTUNNEL_WORKER_CORES": "1",
    }  # fmt: skip

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    yield run
    assert run("down", "--timeout", "1").returncode == 0
    volumes = ["docker", "volume", "rm", "--force", f"{name}_control"]
    subprocess.run(volumes, capture_output=True, check=True)


def document(text: str) -> dict:
    """Return the tables of an analysis, without the folders of captures, which differ."""
    reported = json.loads(text)
    for each in reported["captures"]:
        each["file"] = each["file"].rpartition("/")[2]
    return reported


@pytest.mark.full
def test_two_workers_compute_the_same_rows_as_one_core(profile, captures):
    done = profile("run", "--rm", "-T", "analyze", f"/captures/{CAPTURE}.pcap", "--json")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    local = subprocess.run(
        [
            *(sys.executable, "-m", "windtunnel.harness", "analyze"),
            *(str(captures / f"{CAPTURE}.pcap"), "--json"),
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=True,
    )
    found, expected = document(done.stdout), document(local.stdout)
    assert sorted(found) == sorted(expected)
    for name, rows in expected.items():
        assert found[name] == rows, name
    assert len(found["gaps"]) == LOSSES
    master = profile("logs", "--no-color", "spark-master").stdout
    # A worker repeats its registration if the response takes long.
    assert len(set(re.findall(r"Registering worker (\S+)", master))) == WORKERS, master[-4000:]
    assert "Registering app windtunnel analyze" in master


@pytest.mark.full
def test_a_missing_capture_sets_the_exit_code(profile):
    done = profile("run", "--rm", "-T", "--no-deps", "analyze", "/captures/none.pcap")
    assert done.returncode == 64, done.stdout[-2000:] + done.stderr[-4000:]
    assert "/captures/none.pcap: no such file" in done.stderr
    assert "Traceback" not in done.stderr
