"""`windtunnel decisions`: the decision log as text."""

import json
from pathlib import Path

import numpy as np
import pytest

from windtunnel.harness.artifact.documents import write_document
from windtunnel.harness.artifact.middlebox.decision import DECISION, DROP, HOLD, NO_POSITION
from windtunnel.harness.artifact.middlebox.frame_class import DATA, SM
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.resolved.link_change import LinkChange, LinkChanges, LinkCounts


def make_log(folder: Path, *, session_id: int, shift_ns: int, order: list[int]) -> Path:
    """Write three DATA decisions, one on a retransmit, and one on an SM, in arbitrary order."""
    rows = np.zeros(4, dtype=DECISION)
    rows["session_id"], rows["stream_id"] = session_id, 1001
    rows["time_ns"] = shift_ns + np.arange(4)
    rows["action"] = DROP, HOLD, DROP, DROP
    rows["frame_type"] = DATA, DATA, SM, DATA
    rows["rule"] = 0, 0, 1, 0
    rows["link"] = 0, 0, 1, 0
    rows["position"] = 4224, 1408, NO_POSITION, 4224
    rows["term_id"], rows["term_offset"] = -3, rows["position"]
    rows["attempt"] = 1, 1, 1, 2
    rows["timing_sensitive"] = 0, 0, 1, 0
    run = RunDir(folder)
    write_records(run.decisions, rows[order])
    write_document(run.case, {"faults": [{"id": "lose-data"}, {"id": "lose-feedback"}]})
    return folder


def test_a_truncated_log_is_printed_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(tmp_path, session_id=-5, shift_ns=100, order=[0, 1, 2])
    log = RunDir(tmp_path).decisions
    log.write_bytes(log.read_bytes()[:-7])
    assert main(["decisions", str(tmp_path)]) == exit_code.INCONCLUSIVE
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert "the log is truncated, so decisions are missing" in printed.err
    assert str(log) in printed.err


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_prints_each_decision_as_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(tmp_path, session_id=-5, shift_ns=100, order=[0, 1, 2])
    assert main(["decisions", str(tmp_path)]) == exit_code.OK
    output = lines(capsys)
    assert output[0] == {
        "time_ns": 100,
        "action": "drop",
        "link": "a->b",
        "frame_type": "DATA",
        "rule": "lose-data",
        "session_id": -5,
        "stream_id": 1001,
        "term_id": -3,
        "term_offset": 4224,
        "frame_length": 0,
        "position": 4224,
        "attempt": 1,
        "flags": 0,
        "delay_ns": 0,
        "detail": 0,
        "timing_sensitive": False,
    }
    assert [row["action"] for row in output] == ["drop", "hold", "drop"]
    assert output[2]["frame_type"] == "SM"
    assert output[2]["link"] == "b->a"
    assert output[2]["rule"] == "lose-feedback"


def test_keys_of_equal_seeds_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = []
    for name, session_id, order in (("x", 1, [0, 1, 2, 3]), ("y", 77, [2, 1, 0])):
        folder = make_log(tmp_path / name, session_id=session_id, shift_ns=session_id, order=order)
        main(["decisions", "--key", str(folder)])
        keys.append(lines(capsys))
    assert keys[0] == keys[1]
    assert [row["position"] for row in keys[0]] == [1408, 4224]


def test_a_run_without_a_case_shows_rule_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(tmp_path, session_id=1, shift_ns=0, order=[0])
    RunDir(tmp_path).case.unlink()
    main(["decisions", str(tmp_path)])
    assert lines(capsys)[0]["rule"] == 0


def test_changes_of_links_are_part_of_the_log(tmp_path, capsys):
    make_log(tmp_path, session_id=-5, shift_ns=100, order=[0, 1, 2])
    impairments = [ImpairmentCase(link="a->b", duplicate_ppb=7), ImpairmentCase(link="a->b")]
    changes = tuple(
        LinkChange(number=1, at_ns=at_ns, impairments=each, counts=LinkCounts())
        for at_ns, each in zip((101, 999), impairments, strict=True)
    )
    LinkChanges(changes=changes).write(RunDir(tmp_path).link_changes)
    assert main(["decisions", str(tmp_path)]) == exit_code.OK
    output = lines(capsys)
    assert [row["time_ns"] for row in output] == [100, 101, 101, 102, 999]
    assert [row for row in output if row["action"] == "change-link"] == [
        {
            "time_ns": 101,
            "action": "change-link",
            "link": "a->b",
            "impairments": {"duplicate_ppb": 7},
        },
        {"time_ns": 999, "action": "change-link", "link": "a->b", "impairments": {}},
    ]
    assert main(["decisions", "--key", str(tmp_path)]) == exit_code.OK
    assert {row["action"] for row in lines(capsys)} == {"drop", "hold"}


def test_damaged_changes_of_links_are_inconclusive(tmp_path, capsys):
    make_log(tmp_path, session_id=-5, shift_ns=100, order=[0])
    RunDir(tmp_path).link_changes.write_text('{"schema": "other"}')
    assert main(["decisions", str(tmp_path)]) == exit_code.INCONCLUSIVE
    assert "link-changes.json" in capsys.readouterr().err


def test_no_log_is_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decisions", str(tmp_path)]) == exit_code.INCONCLUSIVE
    assert "no decision log" in capsys.readouterr().err


def test_explains_what_is_not_a_decision_if_there_is_none(tmp_path, capsys):
    make_log(tmp_path, session_id=-5, shift_ns=100, order=[])
    assert main(["decisions", str(tmp_path)]) == exit_code.OK
    output = capsys.readouterr()
    assert output.out == ""
    assert "impairments are not decisions" in output.err
