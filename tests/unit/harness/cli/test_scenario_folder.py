"""Folders of the user in place of a scenario."""

from pathlib import Path

import click
import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.cli import exit_code, scenario_folder, scenarios
from windtunnel.harness.cli.root import main
from windtunnel.harness.cli.scenario_folder import scenario_files

SCENARIO = "schema: windtunnel/1\n"


def filled(folder: Path, *names: str, text: str = SCENARIO) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture
def included(tmp_path: Path) -> Path:
    return filled(tmp_path / "included", "loss/mild.yaml", "loss/heavy.yaml")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_folder_selects_the_files_in_and_below_it_in_order(home: Path, included: Path) -> None:
    filled(home, "sc/b.yaml", "sc/a.yaml", "sc/deep/er/c.yaml", "sc/README.md", "other/d.yaml")
    expected = [Path("sc") / each for each in ("a.yaml", "b.yaml", "deep/er/c.yaml")]
    assert scenarios.find_all(("sc",), included) == expected
    assert scenarios.find_all(("sc/",), included) == expected
    assert scenarios.find_all((str(home / "sc"),), included) == [home / each for each in expected]
    names = [str(each) for each in scenarios.find_all((".",), included)]
    assert names == ["other/d.yaml", "sc/a.yaml", "sc/b.yaml", "sc/deep/er/c.yaml"]


@pytest.mark.parametrize("document", ["suite.json", "matrix.json", "shrink.json", "run.json"])
def test_runs_and_hidden_files_are_ignored(home: Path, included: Path, document: str) -> None:
    filled(home, "a.yaml", ".cache/b.yaml", ".c.yaml", f"runs/x/{document}", "runs/x/y/s.yaml")
    assert scenarios.find_all((".",), included) == [Path("a.yaml")]


def test_the_folder_of_a_run_can_itself_be_given(home: Path) -> None:
    filled(home, "shrink-1/shrink.json", "shrink-1/shrunk.yaml")
    assert scenario_files(Path("shrink-1")) == [Path("shrink-1/shrunk.yaml")]


def test_links_to_folders_are_not_followed(home: Path) -> None:
    filled(home, "sc/a.yaml", "elsewhere/b.yaml")
    (home / "sc/link").symlink_to(home / "elsewhere")
    (home / "sc/itself").symlink_to(home / "sc")
    assert scenario_files(Path("sc")) == [Path("sc/a.yaml")]


def test_a_folder_of_the_user_precedes_an_included_one_if_it_has_scenarios(
    home: Path, included: Path
) -> None:
    filled(home, "loss/notes.txt")
    assert [each.stem for each in scenarios.find_all(("loss",), included)] == ["heavy", "mild"]
    filled(home, "loss/mine.yaml")
    assert scenarios.find_all(("loss",), included) == [Path("loss/mine.yaml")]


def test_a_folder_without_scenarios_is_an_error(home: Path, included: Path) -> None:
    filled(home, "sc/README.md")
    with pytest.raises(click.UsageError, match="no scenario in the folder sc: expected"):
        scenarios.find_all(("sc",), included)


@pytest.mark.parametrize("text", ["services: {harness: {}}\n", "", "about: schema of a\n"])
def test_a_file_that_is_no_scenario_is_an_error(home: Path, text: str) -> None:
    filled(home, "sc/a.yaml")
    filled(home, "sc/compose.yaml", text=text)
    with pytest.raises(click.UsageError, match=r"^sc/compose.yaml is not a scenario: it has nei"):
        scenario_files(Path("sc"))


@pytest.mark.parametrize(
    "text", ["# mine\n\nextends: a.yaml\n", '"schema": windtunnel/1\n', "{name: b, schema: c}\n"]
)
def test_all_ways_to_write_the_key_of_a_scenario_are_recognised(home: Path, text: str) -> None:
    filled(home, "sc/a.yaml", text=text)
    assert scenario_files(Path("sc")) == [Path("sc/a.yaml")]


def test_the_number_of_files_is_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(home, *(f"sc/{index}.yaml" for index in range(4)))
    monkeypatch.setattr(scenario_folder, "FILES_MAX", 4)
    assert len(scenario_files(Path("sc"))) == 4
    filled(home, "sc/deep/5.yaml")
    with pytest.raises(click.UsageError, match="sc has more than 4 scenarios"):
        scenario_files(Path("sc"))
    monkeypatch.setattr(scenario_folder, "ENTRIES_MAX", 3)
    with pytest.raises(click.UsageError, match="sc has more than 3 files and folders"):
        scenario_files(Path("sc"))


def test_explain_rejects_a_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled(home, "sc/a.yaml")
    for name, first in (("sc", "sc/a.yaml"), ("order", "order/across-term-change")):
        assert main(["explain", name]) == exit_code.USAGE
        error = capsys.readouterr().err
        text = f"{name} is a folder of scenarios: expected one scenario, such as {first}"
        assert text in " ".join(error.split())


def test_an_error_in_a_file_of_a_folder_names_the_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(home, "sc/a.yaml", text=GOOD.replace("schema: windtunnel/1", "schema: windtunnel/9"))
    assert main(["run", "--fidelity", "sim", "sc"]) == exit_code.USAGE
    assert capsys.readouterr().err.startswith("windtunnel: sc/a.yaml:1:")


def test_a_file_that_is_named_twice_is_run_once(home: Path, included: Path) -> None:
    filled(home, "sc/a.yaml", "sc/b.yaml")
    chosen = ("sc/b.yaml", "sc", "./sc/a.yaml", "loss/mild", "loss")
    assert scenarios.find_all(chosen, included) == [
        *(Path("sc/b.yaml"), Path("sc/a.yaml")),
        *(included / "loss/mild.yaml", included / "loss/heavy.yaml"),
    ]


def test_two_scenarios_of_one_name_are_refused(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise, their runs would be written to the same folder."""
    text = GOOD.replace("rcv_pos_reaches_end: {within: 5ms}", "rcv_pos_reaches_end")
    filled(home, "sc/a.yaml", "sc/b.yaml", text=text)
    filled(home, "sc/c.yaml", text=text.replace("name: loss/made", "name: loss-made"))
    assert main(["run", "--fidelity", "netns", "sc"]) == exit_code.USAGE
    assert capsys.readouterr().err.splitlines() == [
        "windtunnel: sc/b.yaml: name: expected another name than that of sc/a.yaml, loss/made: "
        "their run folders would be the same",
        "sc/c.yaml: name: expected another name than that of sc/a.yaml, loss/made: their run "
        "folders would be the same",
    ]
