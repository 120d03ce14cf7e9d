"""Readings survive an interruption, and an invalid file is rejected with the line of the error."""

import pytest

from windtunnel.harness.bench.recovery.saved_readings import ReadingsError, SavedReadings
from windtunnel.harness.cli.root import main

VALUES = {"transfer": 5.5, "complete": 1.0}


def test_a_reading_is_found_by_path_setup_parameters_and_seed(tmp_path):
    file = tmp_path / "readings.jsonl"
    SavedReadings(file).add("bursts", "c-tuned", {"nak-delay": "1ns"}, 3, VALUES)
    saved = SavedReadings(file)
    assert saved.find("bursts", "c-tuned", {"nak-delay": "1ns"}, 3) == VALUES
    assert saved.find("bursts", "c-tuned", {"nak-delay": "2ns"}, 3) is None
    assert saved.find("bursts", "c", {"nak-delay": "1ns"}, 3) is None
    assert saved.find("bursts", "c-tuned", {"nak-delay": "1ns"}, 4) is None
    assert saved.find("tail", "c-tuned", {"nak-delay": "1ns"}, 3) is None


def test_a_part_of_a_line_at_the_end_is_ignored(tmp_path):
    file = tmp_path / "readings.jsonl"
    SavedReadings(file).add("bursts", "c", {}, 1, VALUES)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:-1])
    saved = SavedReadings(file)
    assert saved.find("bursts", "c", {}, 1) == VALUES
    saved.add("bursts", "c", {}, 1, VALUES)
    saved.add("bursts", "c", {}, 1, VALUES)
    assert file.read_bytes() == 3 * whole


@pytest.mark.parametrize(
    "line", [b"[]", b"{}", b"{", b'{"path": 1, "setup": 2, "receive": 3, "seed": 4}', b"[" * 99_999]
)
def test_another_file_is_rejected_with_its_line(tmp_path, capsys, line):
    file = tmp_path / "readings.jsonl"
    SavedReadings(file).add("bursts", "c", {}, 1, VALUES)
    file.write_bytes(file.read_bytes() + line + b"\n")
    with pytest.raises(ReadingsError, match=":2: expected a reading, found"):
        SavedReadings(file)
    arguments = ["bench", "--only", "recovery,tail", "--readings", str(file)]
    assert main(arguments) == 64
    assert ":2: expected a reading, found" in capsys.readouterr().err


def test_readings_are_those_of_the_case_recovery(capsys):
    assert main(["bench", "--only", "udp-32", "--readings", "readings.jsonl"]) == 64
    assert "--readings: expected --only recovery" in capsys.readouterr().err
