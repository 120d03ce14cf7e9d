"""Applications whose images are built for a run, and which are services of a compose file."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.netns.test_applications import CLOCK, yaml_of
from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
COMPOSE = """
services:
  counter:
    build: ./counter
    command: [sh, /opt/count.sh, "2"]
    working_dir: /tmp
    user: "1000"
    environment: {RATE: 5, PEER: nobody}
    ports: ["80:80"]
"""
DOCKERFILE = """
FROM windtunnel:local
COPY count.sh /opt/count.sh
"""
COUNT = 'for n in $(seq "$1"); do echo "$n in $(pwd), $RATE of $PEER, user $(id -u)"; done'
SERVICE = {"file": "docker-compose.yaml", "service": "counter"}


def run(folder: Path, dockerfile: str, **keys: object) -> RunDir:
    (folder / "counter").mkdir()
    (folder / "counter" / "Dockerfile").write_text(dockerfile)
    (folder / "counter" / "count.sh").write_text(COUNT)
    (folder / "docker-compose.yaml").write_text(COMPOSE)
    document = {
        "schema": "windtunnel/1",
        "name": "made/built",
        "about": "Made for a test.",
        "seeds": {"root": 1},
        "fidelity": ["compose"],
        "network": {"hosts": ["a", "b"], "link": {"between": ["a", "b"]}},
        "applications": [
            {"id": "counter", "on": "b", "expect": {"ends_by_itself": True}, **keys},
            CLOCK,
        ],
        "budget": {"wall": "60s"},
    }
    file = folder / "built.yaml"
    file.write_text(yaml_of(document))
    out = folder / "runs"
    made = run_suite([file], out=out, seeds=1, fidelity="compose", allow_commands=True)
    return RunDir(made.runs[0].run_dir)


def test_a_service_of_a_compose_file_is_built_and_placed_on_a_host(
    image: str, tmp_path: Path
) -> None:
    folder = run(tmp_path, DOCKERFILE, compose=SERVICE, env={"PEER": "host-a"})
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "PASS", verdict["reason"]
    files = folder.host("b").application("counter")
    assert files.log.read_text().splitlines() == [
        "1 in /tmp, 5 of host-a, user 1000",
        "2 in /tmp, 5 of host-a, user 1000",
    ]
    (name,) = re.findall(r"Successfully tagged (\S+)", files.build_log.read_text())
    # The engine keeps the image for the next run, and this folder has none.
    subprocess.run(["docker", "image", "rm", name], check=True, capture_output=True)


def test_a_build_that_fails_is_the_reason_and_nothing_is_started(
    image: str, tmp_path: Path
) -> None:
    folder = run(tmp_path, DOCKERFILE + "RUN echo no such library; exit 3\n", build="counter")
    verdict = read_verdict(folder.verdict)
    assert verdict is not None
    assert verdict["outcome"] == "INCONCLUSIVE"
    assert "the image of application counter cannot be built from counter: " in verdict["reason"]
    assert "returned a non-zero code: 3" in verdict["reason"]
    assert "no such library" in verdict["reason"]
    assert not folder.host("a").driver_log.exists()
