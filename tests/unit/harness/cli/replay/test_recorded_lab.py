"""`windtunnel replay` of a run that a program controlled: refusals, and required options."""

import json
from pathlib import Path
from typing import Any

import pytest

from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.replay.recorded_lab import drivers_of, read_record, with_programs
from windtunnel.harness.cli.root import main

READER = {
    "do": "start",
    "name": "reader",
    "on": "b",
    "command": ["python", "reader.py", "two words"],
    "env": {"FEED": "aeron:udp?endpoint=${b}:24325"},
    "ready": {"log": "ready", "within": "20s"},
}
REFUSED = {"do": "start", "on": "c", "command": ["evil"]}
LINK = {"do": "link", "action": "partition", "between": ["a", "b"]}
OPTIONS = {"hosts": ["a", "b", "c"], "driver": {"a": "ours", "b": "pyaeron", "c": "ours"}}
PROGRAM = "reader=python mine.py"


@pytest.fixture
def folder(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.make()
    Manifest("suite/run", "lab", 5, "netns", ["pytest"]).write(run.manifest)
    run.case.write_text('{"live": true}')
    write(run, READER, REFUSED, LINK)
    return run


def write(run: RunDir, *requests: dict[str, Any], **changed: Any) -> None:
    rows = [{"sent_ns": 1, "answered_ns": 2, "refused": "", "request": each} for each in requests]
    document = {"schema": "windtunnel-lab-requests/1", "options": OPTIONS, "requests": rows}
    run.lab_requests.write_text(json.dumps(document | changed))


def refused(run: RunDir, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Return the exit code of a replay that starts nothing, and its message."""
    code = main(["replay", str(run.path), *arguments])
    output = capsys.readouterr()
    assert output.out == ""
    return code, output.err


def test_programs_that_the_folder_names_are_shown_and_not_started(folder, capsys):
    code, text = refused(folder, capsys)
    assert code == exit_code.USAGE
    command = "reader=env 'FEED=aeron:udp?endpoint=${b}:24325' python reader.py 'two words'"
    quoted = command.replace("'", "'\"'\"'")
    assert f"if you trust it, add --program '{quoted}'" in text
    assert "evil" not in text


def test_commands_of_the_user_replace_them(folder):
    record = read_record(folder)
    start, link = with_programs(folder, record, {"reader": "python 'my file.py' ${b}"})
    assert start.request["command"] == ["python", "my file.py", "${b}"]
    assert (start.request["env"], start.request["folder"]) == ({}, str(Path.cwd()))
    assert start.request["ready"] == READER["ready"]
    assert link.request == LINK


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--program", "other=x"), "the run had no program 'other': its programs are reader"),
        (("--program", "reader='x"), "No closing quotation"),
        (("--program", "reader= "), "expected a command"),
        (("--program", PROGRAM, "--fidelity", "sim"), "programs need real time"),
    ],
)
def test_wrong_arguments_are_refused(folder, capsys, arguments, text):
    code, found = refused(folder, capsys, *arguments)
    assert (code, text in found) == (exit_code.USAGE, True), found


def test_a_container_of_its_own_cannot_be_started_again(folder, capsys):
    write(folder, {**READER, "image": "example/feed"})
    code, text = refused(folder, capsys, "--program", PROGRAM)
    assert (code, "reader was an image of its own" in text) == (exit_code.USAGE, True)


def test_a_folder_without_complete_recorded_requests_is_refused(folder, capsys):
    write(folder, READER, left_out=1)
    code, text = refused(folder, capsys, "--program", PROGRAM)
    assert (code, "more than 4000 changes" in text) == (exit_code.INCONCLUSIVE, True)
    folder.lab_requests.write_text("{}")
    assert refused(folder, capsys)[0] == exit_code.INCONCLUSIVE
    folder.lab_requests.unlink()
    code, text = refused(folder, capsys)
    assert (code, "repro.txt has its command line" in text) == (exit_code.INCONCLUSIVE, True)


def test_programs_are_rejected_for_a_run_that_no_program_controlled(folder, capsys):
    folder.case.write_text("{}")
    code, text = refused(folder, capsys, "--program", PROGRAM)
    assert (code, "no program controlled this run" in text) == (exit_code.USAGE, True)


def test_drivers_are_those_of_the_run_or_of_the_command_line(folder):
    record = read_record(folder)
    assert drivers_of(folder, record, (None, None)) == OPTIONS["driver"]
    given = drivers_of(folder, record, ("java", "aeronmd:/mine"))
    assert given == {"a": "java", "b": "aeronmd:/mine", "c": "aeronmd:/mine"}


def test_a_driver_that_the_folder_names_by_path_is_not_started(folder):
    write(folder, options={**OPTIONS, "driver": {"b": "aeronmd:/tmp/evil"}})
    with pytest.raises(Failure, match="if you trust it, add --subscriber aeronmd:/tmp/evil"):
        drivers_of(folder, read_record(folder), (None, None))
