"""Runs on virtual time are replayed exactly, shrunk, and reproduced from their captures."""

import json
from pathlib import Path

import pytest
import yaml

from tests.sim import simulated
from tests.unit.harness.replay.test_rules import DOCUMENT
from windtunnel.harness.artifact.middlebox.decision import read_decisions
from windtunnel.harness.artifact.run.agreement import Agreement
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli.root import main
from windtunnel.harness.orchestrate.run.run_spec import Replayed
from windtunnel.harness.replay.from_capture import from_captures

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

RULES = [
    {
        "id": "lose",
        "where": {"link": "a->b"},
        "what": {"type": ["DATA", "PAD"]},
        "act": {"drop": "6%"},
    },
    {
        "id": "late",
        "where": {"link": "a->b"},
        "what": {"type": "DATA"},
        "attempt": 1,
        "act": {"hold": {"share": "2%", "for": "3ms"}},
    },
    {
        "id": "twice",
        "where": {"link": "a->b"},
        "what": {"type": "DATA"},
        "attempt": 1,
        "act": {"duplicate": "2%"},
    },
    {
        "id": "feedback-loss",
        "where": {"link": "b->a"},
        "what": {"type": ["SM", "NAK"]},
        "act": {"drop": "5%"},
    },
]


def scenario(folder: Path, faults, length="400KiB", message="1000B", term="64k") -> Path:
    """Write a scenario of one stream whose messages all have one length."""
    first = DOCUMENT["traffic"][0]
    traffic = {
        **first,
        "channel": first["channel"].replace("term-length=64k", f"term-length={term}"),
        "content": {"bytes": length, "message": {"from": message, "to": message}},
    }
    document = {**DOCUMENT, "traffic": [traffic], "faults": faults, "fidelity": ["sim"]}
    path = folder / "made.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def run(path: Path, folder: Path, **options):
    result = simulated.run(path, folder, **options)
    return result, RunDir(result.run_dir)


def fields(folder: RunDir, *names):
    rows = read_decisions(folder.decisions)
    return [tuple(int(row[name]) for name in names) for row in rows]


def test_a_replay_equals_the_run_to_the_nanosecond(tmp_path):
    path = scenario(tmp_path, RULES)
    _, first = run(path, tmp_path)
    replayed = Replayed("first", first.decisions, ("windtunnel", "replay", "first"))
    # Without the replayed decisions every rule would choose other frames.
    made, again = run(path, tmp_path, replayed=replayed)
    assert made.outcome == "PASS", made.reason
    assert first.decisions.read_bytes() == again.decisions.read_bytes()
    assert first.replayed.exists() is False
    found = Agreement.read(again.replay)
    assert found is not None
    assert found.replays == "first"
    assert found.is_whole
    assert found.ordered == len(fields(first, "time_ns")) > 30
    assert again.repro.read_text().startswith("windtunnel replay first\n")
    verdict = json.loads(again.verdict.read_text())
    texts = [each["text"] for each in verdict["gates"] if each["name"] == "faults_happened"]
    assert texts == [f"{found.ordered} of {found.ordered} decisions repeated"]


@pytest.mark.full
def test_a_replay_of_some_decisions_applies_only_those(tmp_path):
    path = scenario(tmp_path, RULES)
    _, first = run(path, tmp_path)
    part = tmp_path / "part.bin"
    chosen = read_decisions(first.decisions)
    chosen = chosen[(chosen["rule"] == 0) & (chosen["attempt"] == 1)]
    part.write_bytes(chosen.tobytes())
    _, again = run(path, tmp_path, replayed=Replayed("part", part, ()))
    names = ("rule", "position", "attempt", "order")
    assert sorted(fields(again, *names)) == sorted(
        tuple(int(row[name]) for name in names) for row in chosen
    )


def lost(folder: RunDir):
    """Return (position, length, attempt) of the dropped frames."""
    rows = read_decisions(folder.decisions)
    rows = rows[(rows["action"] == 1) & (rows["link"] == 0)]
    return {(int(row["position"]), int(row["frame_length"]), int(row["attempt"])) for row in rows}


@pytest.mark.full
def test_a_scenario_from_two_captures_loses_the_same_frames(tmp_path):
    _, first = run(scenario(tmp_path, RULES), tmp_path)
    made = from_captures([first.capture("b"), first.capture("a")], tmp_path / "captured.yaml")
    path = tmp_path / "captured.yaml"
    path.write_text(made.text)
    stream = made.streams[0]
    assert stream["followed"] is True
    assert stream["reliable"] is True
    assert [note for note in made.notes if "differ in length" in note] == []
    result, again = run(path, tmp_path)
    assert result.outcome == "PASS", result.reason
    assert len(lost(first)) > 20
    assert max(attempt for _, _, attempt in lost(first)) >= 2
    assert lost(again) == lost(first)
    kinds = [
        {
            (int(row["position"]), int(row["attempt"]), int(row["action"]))
            for row in read_decisions(each.decisions)
            if row["action"] in (2, 3)
        }
        for each in (first, again)
    ]
    assert kinds[0] == kinds[1]
    assert len(kinds[0]) > 8


@pytest.mark.parametrize("host", ["a", pytest.param("b", marks=pytest.mark.full)])
def test_a_scenario_from_one_capture_loses_the_same_frames(tmp_path, host):
    """First transmissions only: one capture point does not show enough of a lost retransmission."""
    only_first = [{**RULES[0], "attempt": 1}]
    # In a long term the receiver refuses no frame, so only the link loses frames.
    _, first = run(scenario(tmp_path, only_first, term="1m"), tmp_path)
    path = tmp_path / f"captured-at-{host}.yaml"
    made = from_captures([first.capture(host)], path)
    path.write_text(made.text)
    assert made.streams[0]["lost"] == len(lost(first)) > 10
    (stream,) = made.streams
    assert stream["window_bytes"] == 128 << 10
    assert stream["bytes_per_s"] > 0
    result, again = run(path, tmp_path)
    assert result.outcome == "PASS", result.reason
    assert lost(again) == lost(first)


def test_the_shrink_command_reduces_a_failing_run(tmp_path, capsys):
    """A sabotage needs no impairment, so none may be left."""
    path = scenario(tmp_path, RULES)
    result, first = run(path, tmp_path, sabotage="flip-byte")
    assert result.outcome == "FAIL"
    out = str(tmp_path / "runs")
    assert main(["shrink", str(first.path), "--out", out, "--json"]) == 0
    shrunk = json.loads(capsys.readouterr().out)
    assert shrunk["check"] == "delivered_once"
    assert (shrunk["ranges"], shrunk["rules"], shrunk["streams_after"]) == (0, 0, 1)
    assert shrunk["decisions_before"] == len(read_decisions(first.decisions)) > 30
    assert shrunk["is_sure"]
    assert shrunk["bytes_after"] < shrunk["bytes_before"] == 400 << 10
    again = simulated.run(Path(shrunk["scenario"]), tmp_path, sabotage="flip-byte")
    assert again.outcome == "FAIL"
    assert again.reason.startswith("delivered_once")
