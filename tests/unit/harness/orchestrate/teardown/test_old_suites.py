"""The suites that `windtunnel clean --runs` removes and keeps, and the space that it frees."""

import os
import subprocess
from pathlib import Path

import pytest

from windtunnel.harness.artifact.run.matrix import Matrix
from windtunnel.harness.artifact.run.suite import Suite
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.teardown import old_suites
from windtunnel.harness.orchestrate.teardown.state import LabState

NAMES = [f"2026010{day}T000000Z-00a{day}" for day in range(1, 6)]
CONTENT = bytes(range(256)) * 64


def make_suite(runs: Path, name: str, *, code: int | None = 0, named: str | None = None) -> Path:
    folder = runs / name
    (folder / "loss-x-s1" / "captures").mkdir(parents=True)
    (folder / "loss-x-s1" / "captures" / "a.pcap").write_bytes(CONTENT)
    suite = Suite(name if named is None else named, "sim", ["windtunnel"], 1, exit_code=code)
    suite.write(folder / "suite.json")
    return folder


def clean(runs: Path, *more: str) -> int:
    return main(["clean", "--runs", "--out", str(runs), *more])


def left(runs: Path) -> list[str]:
    return sorted(each.name for each in runs.iterdir())


def test_keeps_the_newest_and_prints_the_rest_oldest_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [make_suite(tmp_path, name) for name in reversed(NAMES)]
    by_du = {
        each.name: int(
            subprocess.run(
                ["du", "-s", "--block-size=1", each], capture_output=True, text=True, check=True
            ).stdout.split()[0]
        )
        for each in folders
    }
    assert clean(tmp_path, "--keep", "3") == exit_code.OK
    assert left(tmp_path) == NAMES[2:]
    freed = [by_du[each] for each in NAMES[:2]]
    assert capsys.readouterr().out.splitlines() == [
        f"removed {tmp_path / NAMES[0]}  {freed[0]:,} bytes",
        f"removed {tmp_path / NAMES[1]}  {freed[1]:,} bytes",
        f"2 of 5 suites removed, {sum(freed):,} bytes; 3 kept in {tmp_path}",
    ]


def test_a_dry_run_prints_the_same_and_removes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES[:2]:
        make_suite(tmp_path, name)
    assert clean(tmp_path, "--keep", "1", "--dry-run") == exit_code.OK
    assert left(tmp_path) == NAMES[:2]
    dry = capsys.readouterr().out
    assert clean(tmp_path, "--keep", "1") == exit_code.OK
    assert (
        dry.replace("would remove", "removed").replace("would be ", "") == capsys.readouterr().out
    )


def test_a_folder_that_is_not_certainly_a_suite_is_kept(tmp_path: Path) -> None:
    runs, other = tmp_path / "runs", tmp_path / "other"
    make_suite(runs, "my-results", named="my-results")
    make_suite(runs, NAMES[0], named=NAMES[1])
    (runs / NAMES[1]).mkdir()
    (runs / NAMES[2]).mkdir()
    (runs / NAMES[2] / "suite.json").write_text('{"schema": "else"}')
    (runs / ".payload").mkdir()
    (runs / NAMES[3]).symlink_to(make_suite(other, NAMES[3]))
    (runs / NAMES[4]).write_text("a file")
    before = left(runs)
    assert clean(runs, "--keep", "0") == exit_code.OK
    assert left(runs) == before
    assert (other / NAMES[3] / "suite.json").exists()


def test_the_suite_document_may_not_be_a_link(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    folder = make_suite(runs, NAMES[0])
    (folder / "suite.json").rename(tmp_path / "suite.json")
    (folder / "suite.json").symlink_to(tmp_path / "suite.json")
    assert clean(runs, "--keep", "0") == exit_code.OK
    assert folder.exists()


def test_links_in_a_suite_are_removed_and_not_followed(tmp_path: Path) -> None:
    runs, outside = tmp_path / "runs", tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    folder = make_suite(runs, NAMES[0])
    (folder / "link").symlink_to(outside)
    (folder / "loss-x-s1" / "link").symlink_to(outside)
    assert clean(runs, "--keep", "0") == exit_code.OK
    assert left(runs) == []
    assert (outside / "precious").read_text() == "kept"


def test_a_matrix_counts_as_one_suite(tmp_path: Path) -> None:
    name = f"matrix-{NAMES[2]}"
    make_suite(tmp_path / name, "ours-to-ours")
    Matrix(name, "sim", [], 1, ["ours"], ["ours"], 1, exit_code=0).write(
        tmp_path / name / "matrix.json"
    )
    make_suite(tmp_path, NAMES[1])
    make_suite(tmp_path, NAMES[3])
    assert clean(tmp_path, "--keep", "1") == exit_code.OK
    assert left(tmp_path) == [NAMES[3]]


def test_an_unfinished_suite_is_kept_until_it_is_a_day_old(tmp_path: Path) -> None:
    folder = make_suite(tmp_path, NAMES[0], code=None)
    changed_s = max(each.stat().st_mtime for each in (folder, *folder.iterdir()))
    (young,) = old_suites.find_suites(tmp_path, changed_s + old_suites.ABANDONED_S - 1)
    (old,) = old_suites.find_suites(tmp_path, changed_s + old_suites.ABANDONED_S)
    (future,) = old_suites.find_suites(tmp_path, changed_s - old_suites.ABANDONED_S)
    assert old_suites.select([young], keep=0) == []
    assert old_suites.select([old], keep=0) == [old]
    assert old_suites.select([future], keep=0) == [future]


def test_an_unfinished_suite_with_a_living_lab_is_kept_at_any_age(tmp_path: Path) -> None:
    make_suite(tmp_path, NAMES[0], code=None)
    record = LabState("t0", f"{NAMES[0]}/loss-x-s1", "sim")
    labs = tmp_path / ".lab"
    labs.mkdir()
    path = record.write(labs)
    try:
        (found,) = old_suites.find_suites(tmp_path, now_s=1e12)
        assert found.may_run
    finally:
        path.unlink()
        (record.memory_directory() / "owner.json").unlink()
        record.memory_directory().rmdir()


def test_space_of_files_with_another_hard_link_is_not_counted(tmp_path: Path) -> None:
    folder = make_suite(tmp_path / "runs", NAMES[0])
    (alone,) = old_suites.find_suites(tmp_path / "runs")
    os.link(folder / "loss-x-s1" / "captures" / "a.pcap", tmp_path / "also")
    (shared,) = old_suites.find_suites(tmp_path / "runs")
    blocks = (tmp_path / "also").stat().st_blocks
    assert alone.size_bytes - shared.size_bytes == blocks * 512


def test_a_suite_that_cannot_be_removed_is_reported_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES[:2]:
        make_suite(tmp_path, name)

    def fail(*_: object, **__: object) -> None:
        raise OSError(16, "Device or resource busy", "captures")

    with monkeypatch.context() as patched:
        patched.setattr(old_suites.shutil, "rmtree", fail)
        assert clean(tmp_path, "--keep", "1") == exit_code.HARNESS
    assert capsys.readouterr().err == (
        f"Error: not removed: {tmp_path / NAMES[0]}: cannot remove captures: "
        "Device or resource busy\n"
    )
    assert clean(tmp_path, "--keep", "1") == exit_code.OK
    assert left(tmp_path) == [NAMES[1]]


def test_a_folder_that_became_a_link_is_not_removed(tmp_path: Path) -> None:
    folder = make_suite(tmp_path / "runs", NAMES[0])
    (found,) = old_suites.find_suites(tmp_path / "runs")
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(LabError):
        old_suites.remove_suite(found)
    assert (tmp_path / "moved" / "suite.json").exists()


def test_no_folder_of_runs_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean(tmp_path / "none") == exit_code.OK
    assert "0 of 0 suites removed" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--keep", "3"], ["--dry-run"]])
def test_options_of_runs_need_runs(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", *option]) == exit_code.USAGE
    assert "need --runs" in capsys.readouterr().err
