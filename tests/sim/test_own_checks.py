"""Own checks in simulated runs: the example of the documentation, and defective checks."""

import re
from pathlib import Path

import pytest

from tests.sim.simulated import run
from windtunnel.harness.artifact.run.own_checks import OwnChecks
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.loader import ScenarioError
from windtunnel.harness.verdict.judge import judge

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own-checks.md"
BLOCK = re.compile(r"```\w+\n# ([\w.]+)\n(.*?)```", re.DOTALL)
HEAD = "from windtunnel.harness.checks import check\n"
BROKEN = """
@check
def raises(evidence):
    return sum(1 for each in evidence.frames("a")) / 0

@check
def never_ends(evidence):
    while True:
        pass
"""


@pytest.fixture
def page(tmp_path):
    """Write the files of the example into a folder."""
    files = dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    assert set(files) == {"checks.py", "feed.yaml"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def own_rows(folder):
    verdict = judge(Path(folder))
    rows = [each for each in verdict.checks if each.about.endswith(".py")]
    return verdict, {each.name: (str(each.outcome), each.text) for each in rows}


def test_the_example_passes(page):
    result = run(page / "feed.yaml", page, allow_commands=True)
    assert result.outcome == "PASS"
    verdict, rows = own_rows(result.run_dir)
    passed = ("PASS", "found nothing wrong")
    assert rows == {"lost_frames_arrive_later": passed, "few_retransmits": passed}
    assert f"{len(verdict.checks)} of {len(verdict.checks)} checks passed" in result.reason


def test_the_example_fails_with_its_text_and_is_judged_again_without_its_file(page):
    file = page / "checks.py"
    text = file.read_text().replace("RETRANSMITS_MAX = 30", "RETRANSMITS_MAX = 3")
    file.write_text(text)
    result = run(page / "feed.yaml", page, allow_commands=True)
    assert result.outcome == "FAIL"
    expected = r"few_retransmits \(checks\.py\): \d+ retransmits, expected at most 3"
    assert re.fullmatch(expected, result.reason)
    folder = RunDir(Path(result.run_dir))
    before = folder.verdict.read_bytes()
    file.unlink()
    marker = page / "executed"
    (folder.path / "checks.py").write_text(f"open({str(marker)!r}, 'w')\n")
    verdict, rows = own_rows(folder.path)
    assert folder.verdict.read_bytes() == before
    assert verdict.reason == result.reason
    assert rows["few_retransmits"][0] == "FAIL"
    assert not marker.exists()


@pytest.mark.full
def test_a_replay_skips_own_checks_and_reports_it(page, capsys):
    text = (page / "checks.py").read_text().replace("RETRANSMITS_MAX = 30", "RETRANSMITS_MAX = 3")
    (page / "checks.py").write_text(text)
    result = run(page / "feed.yaml", page, allow_commands=True)
    assert result.outcome == "FAIL"
    assert main(["replay", str(result.run_dir), "--out", str(page / "again")]) == 0
    printed = capsys.readouterr()
    assert "the own checks in checks.py are left out: no program that a run folder" in printed.err
    assert "PASS" in printed.out
    assert main(["shrink", str(result.run_dir), "--out", str(page / "less")]) != 0
    printed = capsys.readouterr()
    assert "the run violated no check: there is nothing to shrink (own checks and" in printed.err


def test_errors_in_checks_are_harness_errors_with_file_and_line(page):
    (page / "checks.py").write_text(HEAD + BROKEN)
    scenario = page / "feed.yaml"
    scenario.write_text(scenario.read_text() + "budget: {checks: 500ms}\n")
    result = run(scenario, page, allow_commands=True)
    assert result.outcome == "HARNESS"
    assert result.reason == (
        "raises (checks.py): checks.py:5: ZeroDivisionError: division by zero "
        "(at fault: the scenario)"
    )
    _, rows = own_rows(result.run_dir)
    assert rows["never_ends"] == ("HARNESS", "checks.py:7: did not end within 500ms")
    found = OwnChecks.read(RunDir(Path(result.run_dir)).own_checks)
    assert [each.error for each in found.files] == [""]


def test_own_checks_need_permission_and_their_file(page):
    with pytest.raises(ScenarioError, match=r"the scenario executes checks\.py on this machine"):
        run(page / "feed.yaml", page)
    (page / "checks.py").unlink()
    with pytest.raises(ScenarioError, match=r"feed.yaml: checks: .*checks.py: No such file"):
        run(page / "feed.yaml", page, allow_commands=True)
    assert [each.name for each in (page / "runs").iterdir()] == [".payload"]
