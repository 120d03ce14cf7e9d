"""`windtunnel explain` and `windtunnel schema`: files that a run would refuse are refused, and
others are described."""

import json
from pathlib import Path

import pytest

from tests.unit.harness.scenario.test_scenario_loader import GOOD
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.json_schema import json_schema

RUNNABLE = GOOD.replace("rcv_pos_reaches_end: {within: 5ms}", "rcv_pos_reaches_end")
LISTED = "  - delivered_once\n"


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a lab, a kernel or a driver is prepared for a file that is refused."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was started")

    for name in ("privileges.acquire", "labs.require", "labs.require_hosts"):
        monkeypatch.setattr(f"windtunnel.harness.orchestrate.labs.{name}", refuse)
    monkeypatch.setattr("windtunnel.harness.cli.in_kernel.command", refuse)
    monkeypatch.setattr("windtunnel.harness.orchestrate.subjects.peers.pair", refuse)


def written(folder: Path, text: str) -> str:
    file = folder / "mine.yaml"
    file.write_text(text)
    return str(file)


def test_a_sweep_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "base.yaml").write_text(RUNNABLE)
    text = "name: mine\nextends: base.yaml\nsweep: {delay: [1ms, 2ms]}\n"
    assert main(["explain", written(tmp_path, text)]) == exit_code.OK
    output = capsys.readouterr().out
    assert "sweep: 2 scenarios, of which this is the first" in output
    assert "mine/delay-2ms  (delay 2ms)" in output


COMMANDS = {
    "explain": ["explain"],
    "run": ["run", "--fidelity", "netns"],
    "run in simulation": ["run", "--fidelity", "sim"],
    "run with a mutant": ["run", "--fidelity", "sim", "--mutant", "resend-never"],
    "run in another kernel": ["run", "--kernel", "uml"],
    "matrix": ["matrix", "--fidelity", "netns"],
}


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_unknown_check_is_refused_before_anything_starts(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, RUNNABLE.replace(LISTED, "  - delivered_onse\n"))
    assert main([*command, file]) == exit_code.USAGE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(
        f"windtunnel: {file}:22:5: expect[0]: expected the name of a check, "
        "found 'delivered_onse': did you mean delivered_once"
    )
    assert [each.name for each in tmp_path.iterdir()] == ["mine.yaml"]


@pytest.mark.parametrize(
    ("check", "fault"),
    [
        ("{naks_pased: {traffic: one}}", "22:6: expect[0].naks_pased: expected the name of a"),
        ("quite_different", "found 'quite_different': see `windtunnel list --checks`"),
        (
            "naks_paced: {traffic: ome}",
            "22:18: expect[0].naks_paced.traffic: expected the id of a stream, found 'ome': "
            "did you mean one?",
        ),
        (
            "naks_paced: {trafic: one}",
            "22:18: expect[0].naks_paced.trafic: expected an argument of a check, found 'trafic': "
            "did you mean traffic?",
        ),
        (
            "delivered_intact: {undelivered_at_most: 5}",
            "22:24: expect[0].delivered_intact.undelivered_at_most: expected a size with a unit",
        ),
        ("naks_paced: {undelivered_at_most: 5KiB}", "found 'undelivered_at_most'"),
        ("naks_paced: {traffic: []}", "22:5: expect[0].naks_paced: expected arguments that select"),
    ],
)
def test_each_wrong_expectation_has_its_place(
    check: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, RUNNABLE.replace(LISTED, f"  - {check}\n"))
    assert main(["explain", file]) == exit_code.USAGE
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize(
    "check",
    [
        "naks_paced",
        "naks_paced: {traffic: one}",
        "naks_paced: {traffic: [one], to: b}",
        "delivered_intact: {undelivered_at_most: 5KiB}",
    ],
)
def test_a_valid_expectation_is_accepted(check: str, tmp_path: Path) -> None:
    file = written(tmp_path, RUNNABLE.replace(LISTED, f"  - {check}\n"))
    assert main(["explain", file]) == exit_code.OK


def test_a_file_is_needed_unless_the_schema_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == exit_code.USAGE
    assert "Missing argument 'FILE'" in capsys.readouterr().err
    assert main(["explain", "--schema"]) == exit_code.OK
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_the_schema_has_a_command_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == exit_code.OK
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_the_folder_of_the_scenario_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(__file__).parents[4] / "examples/python-echo/python-echo.yaml"
    assert main(["explain", str(file)]) == exit_code.OK
    printed = capsys.readouterr().out
    assert f"{file.parent}/service.py" in printed
    assert "${scenario.dir}" not in printed
