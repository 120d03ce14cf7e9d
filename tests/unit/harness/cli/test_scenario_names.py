"""Lookup of scenario files by their names."""

from pathlib import Path

import click
import pytest

from windtunnel.harness.cli import scenarios


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("loss/mild", "loss/heavy", "reorder/swap", "networks/two-hosts"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text("schema: windtunnel/1\n")
    (tmp_path / "README.md").write_text("not a scenario")
    return tmp_path


def test_names_are_paths_without_suffix_and_networks_are_left_out(folder: Path) -> None:
    assert scenarios.names(folder) == ["loss/heavy", "loss/mild", "reorder/swap"]


@pytest.mark.parametrize("name", ["loss/mild", "loss/mild.yaml"])
def test_finds_by_name(folder: Path, name: str) -> None:
    assert scenarios.find(name, folder) == folder / "loss/mild.yaml"


def test_a_path_of_a_file_is_accepted(folder: Path) -> None:
    own = folder / "own.yml"
    own.write_text("")
    assert scenarios.find(str(own), folder) == own


def test_a_misspelt_name_is_refused_with_the_nearest(folder: Path) -> None:
    with pytest.raises(click.UsageError, match=r"'loss/midl'.*Did you mean loss/mild"):
        scenarios.find("loss/midl", folder)


def test_a_misspelt_file_is_refused_with_the_nearest_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").touch()
    for name in ("price.yaml", "./price.yaml", str(tmp_path / "price.yaml")):
        with pytest.raises(click.UsageError, match=r"Did you mean .*prices.yaml"):
            scenarios.find(name, folder)


def test_an_unknown_name_without_a_similar_one_points_to_the_list(folder: Path) -> None:
    with pytest.raises(click.UsageError, match="windtunnel list"):
        scenarios.find("zzzzzz", folder)


def test_without_names_the_three_main_scenarios_are_chosen() -> None:
    assert [path.stem for path in scenarios.find_all(())] == [
        "reliable-2pct",
        "reliable-swap-and-hold",
        "unreliable-2pct",
    ]


def test_completes_names_or_files() -> None:
    command = click.Command("run")
    parameter = click.Argument(["scenario"])
    context = click.Context(command)
    output = scenarios.complete(context, parameter, "loss/rel")
    assert [item.value for item in output] == ["loss/reliable-2pct"]
    assert scenarios.complete(context, parameter, "./my")[0].type == "file"
