"""Editors find the schema of a scenario: its first line names the published file."""

import json
import re
from pathlib import Path

import pytest

from windtunnel.harness.cli.root import main
from windtunnel.harness.installation import SCENARIOS

FILES = sorted(SCENARIOS.rglob("*.yaml"))
PUBLISHED = SCENARIOS / "scenario.schema.json"
FIRST_LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)")


def test_the_published_schema_is_the_one_that_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["schema"]) == 0
    assert PUBLISHED.read_text() == capsys.readouterr().out, (
        "expected the output of `windtunnel schema`: run `windtunnel schema > "
        "scenarios/scenario.schema.json`"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SCENARIOS)))
def test_the_first_line_names_it(file: Path) -> None:
    found = FIRST_LINE.fullmatch(file.read_text().splitlines()[0])
    assert found is not None
    assert (file.parent / found[1]).resolve() == PUBLISHED


def test_a_wheel_contains_it() -> None:
    import tomllib

    project = tomllib.loads((SCENARIOS.parent / "pyproject.toml").read_text())
    assert "*.json" in project["tool"]["setuptools"]["package-data"]["*"]
    assert json.loads(PUBLISHED.read_text())["$schema"].startswith("https://json-schema.org/")
