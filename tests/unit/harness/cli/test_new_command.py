"""`windtunnel new`: the file that it writes, and what it refuses without writing anything."""

from pathlib import Path

import pytest

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.loader import load_scenario

PROGRAMS = ["b=python 'my reader.py'", "a=./feed --rate 5"]


def test_it_writes_a_scenario_that_explain_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    options = ["--env", "CHANNEL=aeron:udp?endpoint=${b}:24325", "--until", "b", "--loss", "5%"]
    assert main(["new", str(file), *PROGRAMS, *options]) == exit_code.OK
    assert f"windtunnel run {file} --allow-commands" in capsys.readouterr().out
    scenario = load_scenario(file)
    assert scenario.applications[0].command == ("python", "my reader.py")
    assert scenario.network.link is not None
    assert "5%" in file.read_text()
    assert "delay" not in file.read_text()
    assert main(["explain", str(file)]) == exit_code.OK


@pytest.mark.parametrize(("given", "expected"), [([], "loss: 2%"), (["--loss", "none"], "between")])
def test_without_options_the_link_loses_and_delays(
    given: list[str], expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "prices.yaml"
    assert main(["new", str(file), *PROGRAMS, *given]) == exit_code.OK
    assert expected in file.read_text()
    assert ("impairments" in file.read_text()) == (not given)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["prices.yml", *PROGRAMS], "ends in .yaml, found"),
        (["prices.yaml"], "HOST=COMMAND"),
        (["prices.yaml", "a=./feed"], "programs on two hosts or more, found only a"),
        (["prices.yaml", "a=./feed", "b"], "expected HOST=COMMAND"),
        (["prices.yaml", "a=./feed", "b="], "expected HOST=COMMAND"),
        (["prices.yaml", "a=./feed", "b='x"], "No closing quotation"),
        (["prices.yaml", "a=./feed", "B=x"], "found 'B'"),
        (["prices.yaml", *PROGRAMS, "--env", "C=aeron:udp?endpoint=:1"], "single quotes around"),
        (["prices.yaml", *PROGRAMS, "--ready", "c=x"], "no program on host 'c'"),
        (["prices.yaml", *PROGRAMS, "--until", "c"], "no program on host 'c'"),
        (["prices.yaml", *PROGRAMS, "--until", "a", "--for", "3"], "mutually exclusive"),
        (["prices.yaml", *PROGRAMS, "--delay", "5"], "delay"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", *arguments]) == exit_code.USAGE
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_does_not_exist_yet_is_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    assert main(["new", str(file), *PROGRAMS, "b=python ./later.py"]) == exit_code.OK
    noted = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    assert noted == ["./feed", "./later.py"]
    (tmp_path / "feed").touch()
    (tmp_path / "later.py").touch()
    assert main(["new", str(file), *PROGRAMS, "b=python ./later.py", "--force"]) == exit_code.OK
    assert capsys.readouterr().err == ""


def test_a_file_is_overwritten_only_with_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("mine")
    assert main(["new", str(file), *PROGRAMS]) == exit_code.USAGE
    assert "use --force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["new", str(file), *PROGRAMS, "--force"]) == exit_code.OK
    assert file.read_text() != "mine"


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    file = tmp_path / "prices.yaml"
    file.symlink_to(other)
    assert main(["new", str(file), *PROGRAMS, "--force"]) == exit_code.OK
    assert other.read_text() == "mine"
    assert not file.is_symlink()
