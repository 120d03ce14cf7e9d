"""The documentation: its reference is current, its commands exist, its site has no broken link."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from tests.docs import pictures, reference, site_pages
from windtunnel.harness.cli.root import windtunnel
from windtunnel.harness.verdict.checks.subject import NAME as SUBJECT_CHECK
from windtunnel.harness.verdict.registry import CHECKS, GATES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *("README.md", "CONTRIBUTING.md", "scenarios/README.md", "docker/README.md"),
    *sorted(str(each.relative_to(ROOT)) for each in (ROOT / "docs").glob("*.md")),
]
README_LINES_MAX = 150
NAVIGATION = re.compile(r"[\w./-]+\.md")


def test_the_generated_reference_is_current() -> None:
    assert [str(each) for each in reference.differing()] == [], (
        "expected pages as the code describes them: run `python -m tests.docs.reference`"
    )


def test_the_reference_has_every_command_check_and_table() -> None:
    commands = (reference.FOLDER / "commands.md").read_text()
    assert re.findall(r"^## (\S+)$", commands, re.MULTILINE) == list(windtunnel.commands)
    scenario = (reference.FOLDER / "scenario.md").read_text()
    headings = {each.lower() for each in re.findall(r"^## (\S+)$", scenario, re.MULTILINE)}
    assert set(re.findall(r"\]\(#(\w+)\)", scenario)) <= headings


def commands_of(text: str) -> list[list[str]]:
    """Return the command lines of a page, from blocks of code and from inline code."""
    text = text.replace("\\\n", " ")
    blocks = re.findall(r"^ *(?:\$ )?(windtunnel [^\n|<>&#]+)", text, re.MULTILINE)
    inline = re.findall(r"`(windtunnel [^`\n]+)`", text)
    return [shlex.split(each.partition("  #")[0]) for each in (*blocks, *inline)]


def fault_of(words: list[str]) -> str:
    """Return what is wrong with a command line, or an empty string."""
    _, name, *rest = words
    if name.startswith("-") or name == "COMMAND":
        return ""
    command: click.Command | None = windtunnel.commands.get(name)
    if command is None:
        return f"no command {name}"
    if isinstance(command, click.Group):
        if not rest:
            return ""
        inner = command.commands.get(rest[0])
        if inner is None:
            return f"no command {' '.join(words[1:3])}"
        command, rest = inner, rest[: rest.index("--")] if "--" in rest else rest
    known = {option for each in command.params for option in each.opts} | {"--help"}
    if name in ("archive",):
        return ""
    given = [each.partition("=")[0] for each in rest if each.startswith("--")]
    return "".join(f"{name} has no {each} " for each in given if each not in known)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_documented_exist(page: str) -> None:
    found = commands_of((ROOT / page).read_text(encoding="utf-8"))
    faults = {" ".join(each): fault for each in found if (fault := fault_of(each))}
    assert faults == {}


def test_a_command_that_does_not_exist_is_detected() -> None:
    assert fault_of(["windtunnel", "fly"]) == "no command fly"
    assert fault_of(["windtunnel", "run", "--fly=1"]) == "run has no --fly "
    assert fault_of(["windtunnel", "lab", "fly"]) == "no command lab fly"
    assert fault_of(["windtunnel", "lab", "up", "--fly", "--", "--loss"]) == "lab has no --fly "
    assert fault_of(["windtunnel", "lab", "start", "a", "--", "x", "--fly"]) == ""
    assert commands_of("    $ windtunnel run x --seed 1  # why\nsee `windtunnel list`") == [
        ["windtunnel", "run", "x", "--seed", "1"],
        ["windtunnel", "list"],
    ]


def test_the_first_page_is_short_and_has_two_pictures() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= README_LINES_MAX
    shown = re.findall(r"!\[[^\]]+\]\((docs/pictures/[\w.]+)\)", readme)
    assert sorted(shown) == ["docs/pictures/report.png", "docs/pictures/terminal.svg"]
    for each in shown:
        assert 1000 < (ROOT / each).stat().st_size < pictures.SIZE_BYTES_MAX


def test_pictures_need_nothing_from_a_network() -> None:
    svg = (ROOT / "docs/pictures/terminal.svg").read_text(encoding="utf-8")
    assert not re.search(r"url\(\"?http|href=\"http|@import|<script", svg)


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    config = (ROOT / ".ci" / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(NAVIGATION.findall(config[config.index("\nnav:") :]))
    own = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    assert listed == own | {site_pages.site_path(each) for each in site_pages.OUTSIDE}


def test_every_check_of_a_verdict_is_on_the_page_of_checks() -> None:
    page = reference.checks()
    for name in (*CHECKS, *GATES, SUBJECT_CHECK):
        assert f"| `{name}` |" in page, name


def test_links_are_rewritten_for_the_site() -> None:
    known = {"index.md", "ci.md", "scenarios/README.md", "reference/checks.md"}

    def page(text: str, site: str) -> str:
        return site_pages.rewritten(text, site, known)

    assert page("[a](docs/ci.md) [b](LICENSE)", "index.md") == "[a](ci.md) b"
    assert page("[a](../scenarios/README.md#x)", "ci.md") == "[a](scenarios/README.md#x)"
    assert page("[a](../README.md)", "scenarios/README.md") == "[a](../index.md)"
    assert page("[a](https://aeron.io) [b](#here)", "ci.md") == "[a](https://aeron.io) [b](#here)"
    assert page("```\n[a](LICENSE)\n```", "ci.md") == "```\n[a](LICENSE)\n```"
    assert page("[`a`](../LICENSE)", "ci.md") == "`a`"


def test_the_settings_of_the_site_can_be_read() -> None:
    config = yaml.safe_load((ROOT / ".ci" / "mkdocs.yml").read_text(encoding="utf-8"))
    assert config["strict"] is True
    assert all((ROOT / ".ci" / each).is_file() for each in config["hooks"])


def test_screens_of_a_terminal_are_cut_at_its_escape_sequences() -> None:
    recorded = (
        "\x1b[?25l\r\x1b[2K1/2 x traffic\r\x1b[2KPASS x\r\n2/2 y traffic\r\x1b[2K\x1b[?25hend"
    )
    assert pictures.screens(recorded)[1:] == [
        "1/2 x traffic",
        "PASS x\n2/2 y traffic",
        "PASS x\nend",
    ]
    assert pictures.chosen_screen(pictures.screens(recorded), 2) == "PASS x\n2/2 y traffic"
