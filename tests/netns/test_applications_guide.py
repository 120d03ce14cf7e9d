"""The programs and scenarios of docs/applications.md, as a reader would copy them."""

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
FILES = ["ticker.py", "monitor.py", "heartbeat.yaml", "partition.yaml"]
TIMEOUT_S = 140


@pytest.fixture
def project(tmp_path: Path) -> Path:
    blocks = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == FILES
    for name, text in blocks:
        # The tests' interpreter need not be the one that is called python.
        (tmp_path / name).write_text(text.replace("[python,", '["${harness.python}",'))
    return tmp_path


@pytest.mark.full
def test_its_commands_print_what_it_shows(project: Path) -> None:
    """The monitor complains of half a second without a tick, which also happens where many tests
    share few processors: then the verdict is rightly FAIL.
    """
    text = GUIDE.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```console") == 2
    for code, command, shown in blocks:
        line = command.replace("windtunnel ", f"{sys.executable} -m windtunnel.harness ", 1)
        done = subprocess.run(
            line, shell=True, cwd=project, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == int(code or 0), (command, done.stdout, done.stderr)
        assert pattern_of(shown).fullmatch(done.stdout), (command, done.stdout)


def test_its_scenarios_are_valid(project: Path) -> None:
    (nemesis,) = re.findall(r"```yaml\n(nemesis: .*?)```", GUIDE.read_text(), re.DOTALL)
    file = project / "nemesis.yaml"
    file.write_text(f"extends: heartbeat.yaml\nname: nemesis\n{nemesis}")
    for each, count in ((file, 5), (project / "partition.yaml", 0)):
        command = [sys.executable, "-m", "windtunnel.harness", "explain", str(each)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("nemesis-") == count
