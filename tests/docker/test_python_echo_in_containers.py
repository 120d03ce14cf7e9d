"""The example in Python in containers of its own, and a planted bug there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from windtunnel.harness.artifact.run.verdict import read_verdict
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.suite.runner import run_suite

pyaeron = pytest.importorskip("pyaeron")
pytestmark = [
    pytest.mark.docker,
    pytest.mark.peer,
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
EXAMPLE = REPOSITORY / "examples" / "python-echo"
SCENARIO = EXAMPLE / "python-echo-in-containers.yaml"
IMAGE = "windtunnel-test-python-echo:local"
# The example's own Dockerfile needs two registries. This image has the pyaeron of the tests.
DOCKERFILE = """
FROM windtunnel:local
COPY pyaeron /packages/pyaeron
ENV PYTHONPATH=/packages
COPY client.py service.py /app/
"""


def built(folder: Path, image: str, old: str = "", new: str = "") -> None:
    """Build an image of the example's programs, in which some code is replaced."""
    folder.mkdir()
    shutil.copytree(Path(pyaeron.__file__).parent, folder / "pyaeron")
    for name in ("client.py", "service.py"):
        text = (EXAMPLE / name).read_text()
        (folder / name).write_text(text.replace(old, new) if old else text)
    (folder / "Dockerfile").write_text(DOCKERFILE)
    command = ["docker", "build", "--quiet", "--tag", image, str(folder)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("user", "old", "new", "outcome", "text"),
    [
        ("", "", "", "PASS", "checks passed"),
        # Another user than root, who shares the driver and writes to /work.
        (
            "1000:1001",
            "import os",
            "import os; assert os.getuid()",
            "PASS",
            "checks passed",
        ),
        (
            "",
            "send(responses, request)",
            "send(responses, request.replace(b'x', b'y'))",
            "FAIL",
            "reported_once_in_order (responses): message 1 (not on the wire, after position 64)",
        ),
    ],
)
def test_the_example_runs_in_containers(
    image: str, tmp_path: Path, user: str, old: str, new: str, outcome: str, text: str
) -> None:
    built(tmp_path / "image", IMAGE, old, new)
    file = tmp_path / "echo.yaml"
    keys = f"image: {IMAGE}" + (f'\n    user: "{user}"' if user else "")
    file.write_text(SCENARIO.read_text().replace("image: python-echo", keys))
    out = tmp_path / "runs"
    made = run_suite([file], out=out, seeds=1, fidelity="compose", allow_commands=True)
    verdict = read_verdict(RunDir(made.runs[0].run_dir).verdict)
    assert verdict is not None
    assert verdict["outcome"] == outcome, verdict["reason"]
    assert text in verdict["reason"]
