"""The commands of the tutorial, executed in order: they print what the page shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```console(?: exit=(\d+))?\n\$ (windtunnel .*?)\n(.*?)```", re.DOTALL)
TIMEOUT_S = 500.0


def pattern_of(shown: str) -> re.Pattern[str]:
    """Return a pattern for an output as the page shows it, where `...` matches anything."""
    parts = [re.escape(each) for each in re.split(r"\.\.\.", shown)]
    return re.compile(".*".join(parts), re.DOTALL)


@pytest.mark.full
@pytest.mark.timeout(int(TIMEOUT_S) * 7)
def test_its_commands_print_what_it_shows(tmp_path: Path) -> None:
    text = TUTORIAL.read_text(encoding="utf-8")
    (scenario,) = re.findall(r'```yaml title="mine.yaml"\n(.*?)```', text, re.DOTALL)
    (tmp_path / "mine.yaml").write_text(scenario)
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```console")
    for code, command, shown in blocks:
        line = command.replace("windtunnel ", f"{sys.executable} -m windtunnel.harness ", 1)
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == int(code or 0), (command, done.stdout, done.stderr)
        assert pattern_of(shown).fullmatch(done.stdout), (command, done.stdout)
