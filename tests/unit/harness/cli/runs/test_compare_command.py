"""`windtunnel compare`: figures side by side, a document, a page, and refusals."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.unit.harness.artifact.run.test_comparison import FIRST, SECOND
from tests.unit.reports.synthetic_suite import RunParameters, make_suite, verdict_document
from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main

SMALL = RunParameters(frame_count=200)


@pytest.fixture
def runs(tmp_path: Path) -> list[RunDir]:
    suite = make_suite(tmp_path / "suite", SMALL, ("PASS", "FAIL"))
    found = suite.runs()
    for run, outcome, row in zip(found, ("PASS", "FAIL"), (FIRST, SECOND), strict=True):
        document = verdict_document(outcome) | {"results": [row.as_document()]}
        write_document(run.verdict, document)
    return found


def execute(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(each) for each in words])
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return code, printed.out, printed.err


def test_prints_a_column_for_each_run(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # A narrower terminal shows one table for each run.
    code, out, _ = execute(capsys, "compare", *(run.path for run in runs))
    assert code == exit_code.OK
    lines = out.splitlines()
    lines = lines[lines.index("prices: a to b") :]
    assert lines[1].split() == [run.path.name for run in runs]
    assert lines[2].split() == ["verdict", "PASS", "FAIL"]
    assert lines[3].split("  ")[-1].strip() == "3.00 of 4.00 MB/s (-25.0 %)"


def test_a_suite_selects_its_runs_and_each_run_is_compared_once(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    suite = runs[0].path.parent
    _, out, _ = execute(capsys, "compare", "--json", suite, runs[0].path)
    document = json.loads(out)
    assert document["schema"] == "windtunnel-comparison/1"
    assert [run["name"] for run in document["runs"]] == [run.path.name for run in runs]
    assert document["streams"][0]["differences"][1]["naks"] == 3


def parameters_of(out: str) -> list[list[str]]:
    """Return the cells of the table of parameters."""
    lines = out.splitlines()
    assert lines[0] == "parameters that differ"
    return [re.split(r" {2,}", line.strip()) for line in lines[1 : lines.index("prices: a to b")]]


def change(run: RunDir, old: str, new: str) -> None:
    for path in (run.case, run.manifest):
        path.write_text(path.read_text().replace(old, new))


def test_names_the_parameters_that_differ(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    first, second = runs
    second.case.write_bytes(first.case.read_bytes())
    manifest = Manifest.read(first.manifest)
    assert manifest is not None
    manifest.subjects = {"a": SubjectFacts("publisher", "ours", "1.53.0", {"AERON_MTU": "4096"})}
    manifest.write(second.manifest)
    change(second, "|term-length=64k", "|term-length=128k")
    _, out, _ = execute(capsys, "compare", first.path, second.path)
    name = "traffic.term-64k.channel.term-length"
    found = parameters_of(out)
    assert found == [
        [run.path.name for run in runs],
        [name, "64k", "128k"],
        ["driver.a", "-", "ours 1.53.0"],
        ["driver.a.AERON_MTU", "-", "4096"],
    ]
    _, out, _ = execute(capsys, "compare", "--json", first.path, second.path)
    assert json.loads(out)["parameters"][0] == {"name": name, "values": ["64k", "128k"]}


def test_reports_that_no_parameter_differs(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = runs
    second.case.write_bytes(first.case.read_bytes())
    second.manifest.write_bytes(first.manifest.read_bytes())
    _, out, _ = execute(capsys, "compare", first.path, second.path)
    assert out.splitlines()[0] == "parameters: no difference"


def test_lists_a_bounded_number_of_parameters_and_cuts_long_values(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    first, second = runs
    second.case.write_bytes(first.case.read_bytes())
    manifest = Manifest.read(first.manifest)
    assert manifest is not None
    manifest.versions |= {f"library{index}": "9" * 80 for index in range(30)}
    manifest.write(second.manifest)
    _, out, _ = execute(capsys, "compare", first.path, second.path)
    found = parameters_of(out)
    assert len(found) == 1 + 24 + 1
    assert found[1][2] == "9" * 45 + "..."
    assert found[-1] == ["6 more: see --json"]


def test_runs_without_a_case_are_compared_by_their_figures(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    for run in runs:
        run.case.unlink()
    code, out, _ = execute(capsys, "compare", *(run.path for run in runs))
    lines = out.splitlines()
    assert lines[:2] == [
        f"parameters of {run.path.name} are unknown: case.json: No such file or directory"
        for run in runs
    ]
    assert (code, lines[2]) == (exit_code.OK, "prices: a to b")


def test_parameters_that_cannot_be_read_are_unknown(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    runs[1].manifest.write_text('{"schema"')
    _, out, _ = execute(capsys, "compare", *(run.path for run in runs))
    lines = out.splitlines()
    name = runs[1].path.name
    assert lines[0].startswith(f"parameters of {name} are unknown: run.json: invalid JSON: ")
    assert lines[1] == "prices: a to b"
    _, out, _ = execute(capsys, "compare", "--json", *(run.path for run in runs))
    first, second = json.loads(out)["runs"]
    assert "parameters_unknown" not in first
    assert second["parameters_unknown"].startswith("run.json: invalid JSON: ")


def test_a_damaged_verdict_is_named_with_its_path_and_what_to_do(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    broken = runs[1]
    broken.verdict.write_text('{"schema": "')
    code, _, err = execute(capsys, "compare", *(run.path for run in runs))
    assert code == exit_code.INCONCLUSIVE
    assert err.startswith(f"windtunnel: {broken.verdict}: invalid JSON: ")
    assert err.endswith(f": run `windtunnel judge {broken.path}`\n")


def test_writes_a_page(
    runs: list[RunDir], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "compare.html"
    code, out, _ = execute(capsys, "compare", runs[0].path.parent, "--report", file)
    assert code == exit_code.OK
    assert out.splitlines()[-1] == str(file)
    text = file.read_text(encoding="utf-8")
    assert "3.00 of 4.00 MB/s (-25.0 %)" in text
    assert 'data-series="series-compared"' in text


def test_one_run_is_not_compared(runs: list[RunDir], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = execute(capsys, "compare", runs[0].path, runs[0].path)
    assert (code, out) == (exit_code.USAGE, "")
    assert err == "windtunnel: expected 2 to 64 different runs, found 1\n"


def test_a_folder_without_a_judged_run_is_refused(
    runs: list[RunDir], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "compare.html"
    other = tmp_path / "other"
    other.mkdir()
    code, out, err = execute(capsys, "compare", runs[0].path, other, "--report", file)
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert "expected a run folder" in err
    runs[1].verdict.unlink()
    code, out, err = execute(capsys, "compare", runs[0].path, runs[1].path, "--report", file)
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert f"expected a verdict, found none: run `windtunnel judge {runs[1].path}`" in err
    assert not file.exists()


def test_runs_without_figures_are_not_compared(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    for run in runs:
        write_document(run.verdict, verdict_document("PASS"))
    code, out, err = execute(capsys, "compare", *(run.path for run in runs))
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert "found none: judge them again" in err


@pytest.mark.parametrize("text", ['{"schema": ', '{"schema": "windtunnel-verdict/1"}', "[]", "{}"])
def test_a_damaged_verdict_is_refused(
    text: str, runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    runs[1].verdict.write_text(text)
    code, out, err = execute(capsys, "compare", *(run.path for run in runs))
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert "verdict.json" in err


def test_links_are_not_followed(
    runs: list[RunDir], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "verdict.json"
    os.replace(runs[1].verdict, elsewhere)
    runs[1].verdict.symlink_to(elsewhere)
    code, out, err = execute(capsys, "compare", *(run.path for run in runs))
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert "found a symbolic link" in err


def test_control_characters_are_escaped(
    runs: list[RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    document = verdict_document("PASS") | {
        "results": [FIRST.as_document() | {"traffic": "\x1b[2Jmine"}],
        "outcome": "\x07PASS",
    }
    write_document(runs[1].verdict, document)
    _, out, _ = execute(capsys, "compare", *(run.path for run in runs))
    assert "mine" in out
    assert not any(each in out for each in "\x1b\x07")
