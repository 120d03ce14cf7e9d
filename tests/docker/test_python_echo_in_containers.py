"""The example in Python passes in containers, and injected bugs are reported."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.netns.test_python_echo import BUGS
from tests.stand_ins.planted_bugs import (
    EXECUTED,
    assert_named,
    assert_passes_in_containers,
    change_test,
    planted,
    run_example,
)
from windtunnel.harness.installation import ROOT as REPOSITORY
from windtunnel.harness.orchestrate.labs import privileges

pyaeron = pytest.importorskip("pyaeron")
pytestmark = [
    pytest.mark.docker,
    pytest.mark.peer,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(privileges.missing()), reason="files of containers are root's"),
]
EXAMPLE = REPOSITORY / "examples" / "python-echo"
SCENARIO = EXAMPLE / "python-echo-in-containers.yaml"
IMAGE = "windtunnel-test-python-echo:local"
IN_CONTAINERS = ("--windtunnel-fidelity", "compose")
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
    ("user", "old", "new"),
    [
        ("", "", ""),
        # A user other than root, which shares the driver and writes to /work.
        pytest.param(
            "1000:1001", "import os", "import os; assert os.getuid()", marks=pytest.mark.full
        ),
    ],
)
def test_the_example_runs_in_containers(
    image: str, tmp_path: Path, user: str, old: str, new: str
) -> None:
    built(tmp_path / "image", IMAGE, old, new)
    file = tmp_path / "echo.yaml"
    keys = f"image: {IMAGE}" + (f'\n    user: "{user}"' if user else "")
    file.write_text(SCENARIO.read_text().replace("image: python-echo", keys))
    assert_passes_in_containers(file, tmp_path / "runs")


@pytest.mark.full
@pytest.mark.skipif(sys.version_info[:2] != (3, 13), reason="the image has Python 3.13")
@pytest.mark.parametrize("name", BUGS)
def test_an_injected_bug_fails_in_containers_and_is_reported(
    image: str, tmp_path: Path, name: str
) -> None:
    bug, out = BUGS[name], tmp_path / "runs"
    copy = planted(EXAMPLE, bug, tmp_path)
    # The programs import what is in their folder.
    shutil.copytree(Path(pyaeron.__file__).parent, copy / "pyaeron")
    change_test(copy, {EXECUTED: '"/work/executed"'})
    done = run_example(copy, out, "-k", bug.test, *IN_CONTAINERS, limit_s=900)
    assert_named(done, out, bug)
