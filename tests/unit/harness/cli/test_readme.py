"""README and docs describe the current command line."""

import re
from pathlib import Path

import pytest
import yaml

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main, windtunnel
from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES
from windtunnel.harness.verdict.core.outcome import EXIT_CODES

ROOT = Path(__file__).resolve().parents[4]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")


def test_its_example_is_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    file = tmp_path / "mine.yaml"
    file.write_text(example)
    assert main(["explain", str(file)]) == exit_code.OK
    assert "lose-data: 10% of DATA on a->b dropped" in capsys.readouterr().out


def test_the_page_of_commands_names_every_command() -> None:
    rows = set(re.findall(r"^\| `([\w-]+)", COMMANDS, re.MULTILINE))
    assert rows == set(windtunnel.commands)


def test_its_exit_codes_are_those_of_the_verdicts() -> None:
    rows = re.findall(r"^\| ([A-Z]+) +\| (\d+)", README, re.MULTILINE)
    assert {name: int(code) for name, code in rows} == {
        str(outcome): code for outcome, code in EXIT_CODES.items()
    }


def test_it_names_every_sabotage() -> None:
    assert all(f"`{name}`" in README or f" {name}`" in README for name in SABOTAGES)


def test_the_workflow_for_ci_gives_the_command_options_that_it_has() -> None:
    (example,) = re.findall(r"```yml\n(.*?)```", CI, re.DOTALL)
    steps = yaml.safe_load(example)["jobs"]["windtunnel"]["steps"]
    (command,) = (each["run"] for each in steps if " matrix " in each.get("run", ""))
    known = {option for each in windtunnel.commands["matrix"].params for option in each.opts}
    given = {word for word in command.split() if word.startswith("--")}
    assert {"--publishers", "--junit", "--markdown"} <= given <= known
