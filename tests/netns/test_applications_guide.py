"""The programs and scenarios of docs/applications.md work as documented."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_tutorial import BLOCK, pattern_of
from windtunnel.harness.orchestrate.labs import privileges

pytestmark = [
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(privileges.missing()), reason="network namespaces need root"),
]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "applications.md"
FILES = ["ticker.py", "monitor.py", "partition.yaml"]
TIMEOUT_S = 140


@pytest.fixture
def project(tmp_path: Path) -> Path:
    blocks = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == FILES
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    return tmp_path


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the page, with the tests' interpreter as `python`."""
    line = command.replace("windtunnel ", "python -m windtunnel.harness ", 1)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        line, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True,
        text=True, timeout=TIMEOUT_S,
    )  # fmt: skip


def commands() -> list[tuple[str, str, str]]:
    """Return exit code, command and output of each command of the example."""
    text = GUIDE.read_text()
    found: list[tuple[str, str, str]] = BLOCK.findall(text)
    assert len(found) == text.count("```console") == 3
    return found


@pytest.mark.full
def test_commands_print_the_documented_output(project: Path) -> None:
    """The monitor reports half a second without a tick, which also happens where many tests
    share few processors: then the verdict is rightly FAIL.
    """
    for code, command, shown in commands():
        done = shell(command, project)
        assert done.returncode == int(code or 0), (command, done.stdout, done.stderr)
        assert pattern_of(shown).fullmatch(done.stdout), (command, done.stdout)


def test_scenarios_are_valid(project: Path) -> None:
    _, command, shown = commands()[0]
    done = shell(command, project)
    assert pattern_of(shown).fullmatch(done.stdout), done
    block = r'```yaml title="heartbeat.yaml"\n(.*?)```'
    (written,) = re.findall(block, GUIDE.read_text(), re.DOTALL)
    assert (project / "heartbeat.yaml").read_text() == written
    (nemesis,) = re.findall(r"```yaml\n(nemesis: .*?)```", GUIDE.read_text(), re.DOTALL)
    file = project / "nemesis.yaml"
    file.write_text(f"extends: heartbeat.yaml\nname: nemesis\n{nemesis}")
    for each, count in ((file, 5), (project / "partition.yaml", 0)):
        done = shell(f"windtunnel explain {each}", project)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("nemesis-") == count
