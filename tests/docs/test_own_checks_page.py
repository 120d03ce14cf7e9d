"""The commands on the page of own checks, executed in order: they print what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_tutorial import BLOCK, TIMEOUT_S, pattern_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own-checks.md"
FILE = re.compile(r"```\w+\n# ([\w.]+)\n(.*?)```", re.DOTALL)
CHANGE = re.compile(r"^With `(\w+ = \d+)`", re.MULTILINE)


@pytest.mark.full
@pytest.mark.timeout(int(TIMEOUT_S) * 3)
def test_its_commands_print_what_it_shows(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    (change,) = CHANGE.finditer(text)
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```console") == 3
    for block in blocks:
        if block.start() > change.start():
            checks = tmp_path / "checks.py"
            name = change[1].partition(" ")[0]
            checks.write_text(re.sub(rf"^{name} = \d+", change[1], checks.read_text(), flags=re.M))
        code, command, shown = block.groups()
        line = command.replace("windtunnel ", f"{sys.executable} -m windtunnel.harness ", 1)
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == int(code or 0), (command, done.stdout, done.stderr)
        printed = done.stdout or done.stderr
        assert pattern_of(shown).fullmatch(printed), (command, printed)
