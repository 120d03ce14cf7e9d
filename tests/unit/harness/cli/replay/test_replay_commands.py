"""`replay`, `shrink` and `from-capture`: errors are one line and have the right exit code."""

import errno
import lzma
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.unit.harness.replay.test_rules import DOCUMENT, case_of, rule
from windtunnel.harness.artifact.middlebox.decision import DECISION
from windtunnel.harness.artifact.middlebox.ledger import Ledger, RuleAccount
from windtunnel.harness.artifact.records import write_records
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.root import main
from windtunnel.harness.scenario.loader import load_scenario

GOLDEN = Path(__file__).resolve().parents[4] / "golden"
RULES = [rule("lose", {"drop": "5%"}, "DATA")]


@pytest.fixture
def folder(tmp_path: Path) -> RunDir:
    """A run folder that passes all checks of a command before it starts anything."""
    run = RunDir(tmp_path / "run")
    run.make()
    Manifest("suite/run", "made/up", 5, "sim", ["windtunnel", "run"]).write(run.manifest)
    run.scenario.write_text(yaml.safe_dump({**DOCUMENT, "faults": RULES}))
    case_of(RULES).write(run.case)
    run.payload.write_bytes(b"payload")
    rows = np.zeros(3, dtype=DECISION)
    rows["action"], rows["frame_type"], rows["stream_id"] = 1, 1, 1001
    rows["session"] = rows["attempt"] = 1
    write_records(run.decisions, rows)
    Ledger({}, {"lose": RuleAccount(eligible=9, selected=3)}).write(run.ledger)
    run.verdict.write_text('{"checks": [{"name": "x", "outcome": "PASS", "text": ""}]}')
    return run


def refused(command: str, folder: RunDir, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the only line that a command prints, which ends with exit code 2."""
    assert main([command, str(folder.path)]) == exit_code.INCONCLUSIVE
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("windtunnel: ")
    return line


BOTH = pytest.mark.parametrize("command", ["replay", "shrink"])


@BOTH
def test_a_damaged_manifest_is_named_with_its_path_and_what_to_do(command, folder, capsys):
    folder.manifest.write_text("{")
    folder.repro.write_text("windtunnel run x --seed 1\n")
    line = refused(command, folder, capsys)
    assert line.startswith(f"windtunnel: {folder.manifest}: invalid JSON: ")
    assert line.endswith(f": run the scenario again, with the command line in {folder.repro}")


@BOTH
def test_a_manifest_that_must_not_be_read_is_named_with_the_reason(
    command, folder, capsys, monkeypatch
):
    real = os.open

    def refuse(path, *rest, **named):
        if Path(path) == folder.manifest:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *rest, **named)

    folder.repro.write_text("windtunnel run x --seed 1\n")
    monkeypatch.setattr(os, "open", refuse)
    line = refused(command, folder, capsys)
    assert line == f"windtunnel: {folder.manifest}: cannot be read: Permission denied"


@BOTH
def test_a_missing_folder_is_reported(command, tmp_path, capsys):
    assert "no such folder" in refused(command, RunDir(tmp_path / "none"), capsys)


@BOTH
def test_a_folder_without_a_run_is_reported(command, tmp_path, capsys):
    assert "it has no run.json" in refused(command, RunDir(tmp_path), capsys)


@BOTH
@pytest.mark.parametrize("name", ["scenario", "case", "payload"])
def test_a_missing_file_is_reported(command, name, folder, capsys):
    getattr(folder, name).unlink()
    assert "the run cannot be repeated without it" in refused(command, folder, capsys)


@BOTH
def test_a_manifest_of_another_schema_is_reported(command, folder, capsys):
    folder.manifest.write_text('{"schema": "windtunnel-run/0"}')
    assert "expected schema windtunnel-run/1" in refused(command, folder, capsys)


@BOTH
def test_an_invalid_case_is_reported(command, folder, capsys):
    folder.case.write_text("{}")
    assert "cannot be parsed" in refused(command, folder, capsys)


@BOTH
def test_a_missing_decision_log_is_reported(command, folder, capsys):
    folder.decisions.unlink()
    assert "expected a decision log" in refused(command, folder, capsys)


@BOTH
def test_a_log_that_ends_within_a_record_is_reported(command, folder, capsys):
    folder.decisions.write_bytes(folder.decisions.read_bytes()[:-9])
    assert "expected a multiple of 64 bytes, found 183" in refused(command, folder, capsys)


@BOTH
def test_a_log_that_lacks_whole_records_is_reported(command, folder, capsys):
    folder.decisions.write_bytes(folder.decisions.read_bytes()[:-64])
    assert "expected 3 decisions (as in ledger.json), found 2" in refused(command, folder, capsys)


@BOTH
def test_a_log_of_an_older_version_is_reported(command, folder, capsys):
    rows = np.fromfile(folder.decisions, dtype=DECISION)
    rows["session"] = 0
    write_records(folder.decisions, rows)
    assert "written by an older version" in refused(command, folder, capsys)


@BOTH
def test_an_impossible_decision_is_reported(command, folder, capsys):
    rows = np.fromfile(folder.decisions, dtype=DECISION)
    rows["rule"][1] = 4
    write_records(folder.decisions, rows)
    assert "decision 2 of 3: expected one of 1 rules" in refused(command, folder, capsys)


def test_a_run_that_passed_is_not_shrunk(folder, capsys):
    assert "there is nothing to shrink" in refused("shrink", folder, capsys)


def test_a_scenario_with_an_unknown_check_is_not_shrunk(folder, capsys):
    document = {**DOCUMENT, "faults": RULES, "expect": ["delivered_onse"]}
    folder.scenario.write_text(yaml.safe_dump(document))
    assert main(["shrink", str(folder.path)]) == exit_code.USAGE
    assert "found 'delivered_onse': did you mean delivered_once" in capsys.readouterr().err


def test_a_run_without_a_verdict_is_not_shrunk(folder, capsys):
    folder.verdict.unlink()
    assert "cannot read the verdict" in refused("shrink", folder, capsys)


def test_a_check_that_the_run_did_not_violate_is_rejected(folder, capsys):
    folder.verdict.write_text('{"checks": [{"name": "x", "outcome": "FAIL", "text": ""}]}')
    assert main(["shrink", str(folder.path), "--check", "y"]) == exit_code.USAGE
    assert "--check y: expected a check that the run violated (x)" in capsys.readouterr().err


def test_a_replay_is_not_shrunk_but_the_original_run_is(folder, capsys):
    Manifest("s/run", "made/up", 5, "sim", ["windtunnel"], replays="s/first").write(folder.manifest)
    assert "is a replay of s/first: shrink that run instead" in refused("shrink", folder, capsys)


def test_a_trial_of_the_swarm_is_neither_shrunk_nor_replayed_without_its_digest(folder, capsys):
    folder.scenario.unlink()
    Manifest("swarm/9", "swarm", 9, "sim", ["windtunnel", "swarm"]).write(folder.manifest)
    assert "its seed determines everything" in refused("shrink", folder, capsys)
    assert "there is no digest to compare with" in refused("replay", folder, capsys)
    command = ["replay", str(folder.path), "--fidelity", "netns"]
    assert main(command) == exit_code.USAGE
    assert "with its original drivers and fidelity" in capsys.readouterr().err


# ---- from-capture ----


def from_capture(*words: object) -> int:
    return main(["from-capture", *map(str, words)])


def test_a_golden_capture_becomes_a_scenario(tmp_path, capsys):
    out = tmp_path / "seen.yaml"
    assert from_capture(GOLDEN / "loss-reliable" / "capture.pcap.xz", "--out", out) == exit_code.OK
    output = capsys.readouterr()
    assert "stream 1001, session 77: 1273 frames; estimated: 68 lost" in output.out
    assert "message lengths vary" in output.err
    scenario = load_scenario(out)
    (traffic,) = scenario.traffic
    assert "init-term-id=2147483646|term-id=2147483646|term-offset=0" in traffic.channel
    assert "mtu=1408|term-length=65536" in traffic.channel
    assert {fault.act.action for fault in scenario.faults} == {"drop"}


def test_a_file_is_not_overwritten_without_force(tmp_path, capsys):
    out = tmp_path / "seen.yaml"
    out.write_text("mine")
    capture = GOLDEN / "one-message" / "capture.pcap.xz"
    assert from_capture(capture, "--out", out) == exit_code.USAGE
    assert out.read_text() == "mine"
    assert "use --force to overwrite it" in capsys.readouterr().err
    assert from_capture(capture, "--out", out, "--force") == exit_code.OK
    assert load_scenario(out).faults == ()


def pcap(*packets: bytes) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 1, 0, len(p), len(p)) + p for p in packets)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "seen"),
        (b"no capture at all, but words", "seen"),
        (pcap(), "expected an Aeron stream, found no packets"),
        (pcap(bytes(60)), "expected an Aeron stream, found 1 packets"),
        (lzma.compress(pcap())[:-20], "seen"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), "zstd is not supported"),
    ],
)
def test_a_file_that_is_not_a_capture_of_aeron_is_reported(content, text, tmp_path, capsys):
    file = tmp_path / "seen.pcap"
    file.write_bytes(content)
    assert from_capture(file, "--out", tmp_path / "out.yaml") == exit_code.INCONCLUSIVE
    output = capsys.readouterr()
    assert text in output.err
    assert not (tmp_path / "out.yaml").exists()


def test_a_missing_capture_is_reported(tmp_path, capsys):
    assert from_capture(tmp_path / "none.pcap") == exit_code.INCONCLUSIVE
    assert "No such file" in capsys.readouterr().err


def test_a_stream_that_is_not_in_the_capture_is_reported(tmp_path, capsys):
    capture = GOLDEN / "one-message" / "capture.pcap.xz"
    words = [capture, "--stream", 9, "--out", tmp_path / "out.yaml"]
    assert from_capture(*words) == exit_code.INCONCLUSIVE
    assert "found no stream 9" in capsys.readouterr().err
