"""The inspection commands, compared with the output of Aeron's tool for the golden archive."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.golden.archive_files import data_frames
from tests.golden.reader import GOLDEN, message
from tests.unit.driver.archive.tool.outcome import put_mark_file
from windtunnel.driver.archive.storage.catalog import FILE_NAME
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.tool import failure, frame_dump
from windtunnel.driver.archive.tool.directory import now_ms
from windtunnel.driver.archive.tool.program import main
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.cnc.error_log import ErrorLog


def _snake(name):
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


def _described_by_aeron():
    """Return {recording id: {field: value}} of the golden `describe.txt`."""
    found = {}
    for line in (GOLDEN / "archive/describe.txt").read_text().splitlines():
        if line.startswith("[RecordingDescriptor]"):
            pairs = dict(item.split("=", 1) for item in line.split(":", 1)[1].split("|"))
            row = {
                _snake(name): text.strip("'") if text.startswith("'") else int(text)
                for name, text in pairs.items()
            }
            found[row["recording_id"]] = row
    return found


def test_describe_prints_the_same_values_as_aerons_tool(tool, golden):
    outcome = tool("describe", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    expected = _described_by_aeron()
    rows = {row["recording_id"]: row for row in outcome.document["recordings"]}
    assert sorted(rows) == sorted(expected) == [0, 1, 2]
    for recording_id, row in rows.items():
        assert {name: row[name] for name in expected[recording_id]} == expected[recording_id]
        assert row["state"] == "VALID"
    assert outcome.document["catalog"]["capacity"] == 1048576
    assert [len(row["segments"]) for row in rows.values()] == [3, 4, 7]


def test_describe_as_text_has_the_same_numbers(tool, golden):
    outcome = tool("describe")
    for row in _described_by_aeron().values():
        assert f"recording {row['recording_id']}: VALID" in outcome.out
        assert f"stream           {row['stream_id']}, session {row['session_id']}" in outcome.out
        assert f"{row['start_position']} to {row['stop_position']}, " in outcome.out
    assert "mark file          none" in outcome.out
    assert "recording 1" not in tool("describe", 2).out


def test_describe_shows_the_mark_file_and_whether_its_archive_is_active(tool, golden):
    put_mark_file(golden, now_ms(), pid=77, archive_id=5, control_channel="aeron:udp?e=\x1b[31m")
    outcome = tool("describe")
    assert "id 5, process 77, running" in outcome.out
    assert "\\x1b[31m" in outcome.out
    assert "\x1b" not in outcome.out
    put_mark_file(golden, -1, pid=77)
    assert tool("describe", "--json").document["mark_file"]["is_active"] is False
    assert tool("pid").out == "77\n"


def test_describe_shows_invalid_recordings_on_request(tool, golden):
    assert tool("mark-invalid", 1).out == "recording 1 is now INVALID\n"
    assert "recording 1" not in tool("describe").out
    assert "recording 1: INVALID" in tool("describe", "--all").out
    assert "recording 1: INVALID" in tool("describe", 1).out
    assert tool("count").out == "2\n"
    assert tool("mark-invalid", 1).out == "recording 1 is already INVALID\n"
    assert tool("mark-valid", 1).code == 0
    assert tool("count").out == "3\n"


@pytest.mark.parametrize(
    ("recording_id", "ranges", "length_max"),
    [(0, (0, 250), 2000), (1, (0, 300), 3000)],
)
def test_dump_shows_the_messages_that_were_published(
    tool, golden, recording_id, ranges, length_max
):
    lines = tool("dump", recording_id, "--json").out.splitlines()
    payload = b"".join(bytes.fromhex(json.loads(line)["payload"]) for line in lines[1:])
    assert payload == b"".join(message(each, length_max).tobytes() for each in range(*ranges))


def test_dump_shows_the_frames_as_they_were_captured(tool, golden):
    captured = {(term, offset): frame for term, offset, frame in data_frames(2003)}
    shown = [json.loads(line) for line in tool("dump", 2, "--json").out.splitlines()[1:]]
    data = [each for each in shown if each["type"] == "DATA"]
    assert len(data) > 300
    for each in data:
        frame = captured[each["term_id"], each["term_offset"]]
        assert frame[32:].hex() == each["payload"]
        assert frame[5] == each["flags"]
    assert any(each["type"] == "PAD" and each["payload"] == "" for each in shown)


def test_dump_stops_at_its_limit_and_shows_bytes(tool, golden):
    outcome = tool("dump", 0, "--limit", 2)
    assert outcome.out.count("  position ") == 3  # one of them the recording's own
    assert "00000000  00 " in outcome.out
    assert "position 64  DATA  flags 10000000" in outcome.out


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize(
    ("name", "damage", "found"),
    [
        ("0-131072.rec", lambda path: path.unlink(), "found none from 131072 to 262144;"),
        ("0-131072.rec", lambda path: os.truncate(path, 0), "found none from 131072 to 262144;"),
        ("0-0.rec", lambda path: path.unlink(), "found none from 0 to 131072;"),
    ],
)
def test_dump_reports_frames_that_are_missing(tool, golden, name, damage, found, options):
    whole = tool("dump", 0, *options)
    assert (whole.code, whole.err) == (0, "")
    damage(golden / name)
    outcome = tool("dump", 0, *options)
    assert outcome.code == 2
    assert "recording 0: expected frames at all positions from 0 to " in outcome.err
    assert found in outcome.err
    assert outcome.out.splitlines()[-1] == whole.out.splitlines()[-1]


def test_dump_reports_frames_that_are_missing_at_the_end(tool, golden):
    last = max(golden.glob("0-*.rec"), key=lambda each: int(each.stem.partition("-")[2]))
    base = int(last.stem.partition("-")[2])
    last.unlink()
    assert f"found none from {base} to " in tool("dump", 0).err
    assert tool("dump", 0, "--limit", 3).code == 0
    assert tool("dump").code == 2


@pytest.mark.parametrize("words", [("count",), ("dump", "0"), ("--help",)])
def test_a_closed_pipe_does_not_mean_that_there_is_no_archive(golden, words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "windtunnel.driver.archive", *words]
    options = [] if words == ("--help",) else ["--dir", golden]
    done = subprocess.run([*command, *options], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (failure.BROKEN_PIPE, b"")


def test_too_little_memory_is_reported(tool, golden, monkeypatch):
    def fail(*_: object) -> None:
        raise MemoryError("cannot allocate 5 GiB")

    monkeypatch.setattr(frame_dump.MissingFrames, "on_frame", fail)
    outcome = tool("dump", 0)
    assert outcome.code == 2
    assert "archive: not enough memory (see `ulimit -v`): cannot allocate 5 GiB\n" in outcome.err


def test_errors_prints_the_error_log_of_the_mark_file(tool, golden):
    path = put_mark_file(golden, -1)
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8).copy()
    log = ErrorLog(content[8192:], ManualClock())
    log.record(0, "no\x07room")
    log.record(0, "no\x07room")
    path.write_bytes(content.tobytes())
    assert "2 from " in tool("errors").out
    assert "(0) no\\x07room\n1 distinct errors\n" in tool("errors").out
    (row,) = tool("errors", "--json").document["errors"]
    assert (row["count"], row["text"]) == (2, "(0) no\x07room")


def test_capacity_is_printed_and_raised_but_not_lowered(tool, golden):
    assert tool("capacity").out == "1048576\n"
    assert tool("capacity", 2_000_000).out == "2000000\n"
    assert tool("capacity", 5).out == "2000000\n"
    assert tool("describe", "--json").document["catalog"]["capacity"] == 2_000_000
    outcome = tool("capacity", 1 << 31)
    assert outcome.code == 64
    assert "2147483648 is not in the range 1<=x<=2147483647" in outcome.err
    assert "recover" not in outcome.err


@pytest.mark.parametrize(
    "verb",
    [
        *("describe", "dump", "errors", "pid", "count", "capacity", "verify", "delete-orphans"),
        *("mark-valid 0", "mark-invalid 0", "checksum CRC-32", "capacity 4096"),
    ],
)
def test_a_directory_without_an_archive_is_reported(tool, tmp_path, verb):
    outcome = tool(*verb.split())
    assert (outcome.code, outcome.out) == (1, "")
    assert "expected an archive, found no archive.catalog" in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "verb", ["describe 9", "dump 9", "verify 9", "mark-valid 9", "checksum CRC-32 9"]
)
def test_an_unknown_recording_is_reported(tool, golden, verb):
    outcome = tool(*verb.split())
    assert outcome.code == 1
    assert "no recording 9" in outcome.err


@pytest.mark.parametrize(
    "words", [["nonsense"], ["describe", "-1"], ["checksum", "CRC-9"], ["verify", "--loud"]]
)
def test_an_invalid_command_line_is_reported(capsys, words):
    assert main(words) == 64
    assert "windtunnel archive" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["pid", "errors"])
def test_a_missing_or_invalid_mark_file_is_reported(tool, golden, verb):
    assert tool(verb).code == 1
    (golden / "archive-mark.dat").write_bytes(b"\xff" * 200)
    outcome = tool(verb)
    assert outcome.code == 2
    assert "archive-mark.dat: expected" in outcome.err


def test_damage_is_reported_after_the_readable_entries(tool, golden):
    with open(golden / FILE_NAME, "r+b") as file:
        file.seek(544)
        file.write(b"\xff\xff\xff\x7f")
    for verb in ("describe", "count", "dump --limit 1"):
        outcome = tool(*verb.split())
        assert outcome.code == 2
        assert "the entry at 544 has length 2147483647" in outcome.err
        assert outcome.out
    assert tool("count").out == "2\n"
    assert tool("mark-invalid", 0).code == 2


def test_an_unreadable_entry_is_reported_and_the_others_are_verified(tool, golden):
    with open(golden / FILE_NAME, "r+b") as file:
        file.seek(288 + 112)
        file.write(b"\xff\xff\xff\x7f")
    shown = tool("describe", "--all").out
    assert "entry at 288: VALID, unreadable: RecordingDescriptor.stripped_channel" in shown
    outcome = tool("verify", "--read-only")
    assert outcome.code == 2
    assert "recording -1: NOT VALID: invalid catalog entry" in outcome.out
    assert "recording 2: OK" in outcome.out


def test_nothing_is_written_while_an_archive_is_active(tool, golden):
    put_mark_file(golden, now_ms(), pid=77)
    before = (golden / FILE_NAME).read_bytes()
    for verb in ("verify", "mark-invalid 0", "checksum CRC-32", "delete-orphans --yes"):
        outcome = tool(*verb.split())
        assert outcome.code == 2
        assert "the archive is running as process 77; stop it before writing" in outcome.err
    assert tool("verify", "--read-only").code == 0
    assert (golden / FILE_NAME).read_bytes() == before


def test_a_deleted_recording_stays_deleted(tool, golden):
    with CatalogWriter(golden) as catalog:
        catalog.set_state(1, 2)
    outcome = tool("mark-valid", 1)
    assert outcome.code == 2
    assert "recording 1 is deleted and cannot be restored" in outcome.err
    assert "recording 1: skipped: deleted" in tool("verify").out


@pytest.mark.parametrize("words", [[], ["run"], ["verify"], ["describe"]])
def test_the_help_lists_the_exit_codes(capsys, words):
    assert main([*words, "--help"]) == 0
    _, listed = capsys.readouterr().out.split("Exit codes: ")
    expected = {failure.OK, failure.DAMAGED, failure.USAGE}
    expected |= {failure.INTERRUPTED, failure.BROKEN_PIPE}
    expected |= set() if words == ["run"] else {failure.NOT_FOUND}
    expected |= set() if words and words != ["run"] else {failure.TIMED_OUT}
    assert {int(each) for each in re.findall(r"(?:^|;\s+)(\d+) ", listed)} == expected
