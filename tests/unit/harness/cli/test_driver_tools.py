"""The tools that inspect a driver: output formats, exit codes, the live view."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.golden.reader import load
from tests.unit.harness.inspect.driver_folder import (
    RING_AT,
    put_counter,
    put_error,
    small_cnc,
    stream_key,
    unpack_loss_report,
    write,
)
from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.inspect import look
from windtunnel.harness.cli.render.table import Column, View, drawn, plain_lines, printable
from windtunnel.harness.cli.render.time_text import time_text
from windtunnel.harness.cli.root import DRIVER_COMMANDS, main, windtunnel
from windtunnel.harness.dissect.driver_files import log_buffer
from windtunnel.harness.inspect import log_source

CHANNEL = "aeron:udp?endpoint=localhost:24325"
TABLES = ("stat", "streams", "backlog", "errors", "loss")
PATIENCE_S = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A living driver with a stream, an error and a loss."""
    content = small_cnc(heartbeat_ms=time.time_ns() // 1_000_000 + 3_600_000)
    key = stream_key(5, 77, 1001, CHANNEL)
    put_counter(content, 0, type_id=0, label="Bytes sent", value=1_234_567)
    put_counter(content, 1, type_id=0, label="Bytes received")
    for counter_id, (type_id, name) in enumerate(((2, "snd-pos"), (12, "pub-pos")), 2):
        label = f"{name}: 5 77 1001 {CHANNEL}"
        put_counter(content, counter_id, type_id=type_id, label=label, key=key, value=-64)
    put_error(content, 0, 3, 1_795_218_059_087, "(22) Invalid\n[where] why\n")
    unpack_loss_report("reliable", tmp_path)
    return write(tmp_path, content)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(each) for each in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_pipe_gets_an_aligned_table_without_escapes(folder, capsys):
    code, out, err = run(capsys, "stat", "--dir", folder)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert re.fullmatch(
        rf"\d\d:\d\d:\d\d  {folder}  cnc 0.2.0, pid 4711, heartbeat .* ms ago", lines[0]
    )
    assert lines[1:4] == [
        "id      value  label",
        " 0  1,234,567  Bytes sent",
        " 1          0  Bytes received",
    ]
    assert "\x1b" not in out


@pytest.mark.parametrize("tool", TABLES)
def test_each_table_is_shown_once_in_a_pipe_and_as_json(folder, capsys, tool):
    code, out, err = run(capsys, tool, "--dir", folder)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) >= 3
    code, out, err = run(capsys, tool, "--json", "--dir", folder)
    assert (code, err) == (0, "")
    assert json.loads(out)["schema"] == f"windtunnel-{tool}/1"


def test_an_error_of_several_lines_stays_in_its_column(folder, capsys):
    _, out, _ = run(capsys, "errors", "--dir", folder)
    first, second = out.splitlines()[2:4]
    assert first.startswith("    3  ")
    assert first.index("(22) Invalid") == second.index("[where] why")
    assert out.endswith("1 distinct errors observed\n")


def test_the_filters_of_the_command_line_select_counters(folder, capsys):
    _, out, _ = run(capsys, "stat", "--dir", folder, "--json", "--type", "^0$", "--nonzero")
    assert [each["label"] for each in json.loads(out)["counters"]] == ["Bytes sent"]
    _, out, _ = run(capsys, "stat", "--dir", folder, "--json", "--session", "78")
    assert [each["counter_id"] for each in json.loads(out)["counters"]] == [0, 1]
    _, out, _ = run(capsys, "stat", "--dir", folder, "--json", "--identity", "^5$")
    assert [each["counter_id"] for each in json.loads(out)["counters"]] == [2, 3]


def test_the_directory_comes_from_the_environment(folder, capsys, monkeypatch):
    monkeypatch.setenv("AERON_DIR", str(folder))
    assert run(capsys, "driver-info", "--pid") == (0, "4711\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["stat", "--type", "["],
        ["stat", "--interval", "0"],
        ["logbuffer"],
        ["logbuffer", "x", "--hexdump", "3:0"],
        ["logbuffer", "x", "--hexdump", "64"],
        ["logbuffer", "x", "--term", "3"],
        ["driver-info", "--pid", "--version"],
        ["driver-info", "--token", "x"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_one_line_and_64(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out, err.count("\n")) == (exit_code.USAGE, "", 1)


@pytest.mark.parametrize("tool", [*TABLES, "driver-info"])
def test_without_a_driver_the_exit_code_is_1(tmp_path, capsys, tool):
    code, out, err = run(capsys, tool, "--dir", tmp_path)
    assert (code, out) == (exit_code.NOTHING, "")
    assert str(tmp_path) in err


@pytest.mark.parametrize("tool", ["stat", "streams", "backlog", "errors", "driver-info"])
def test_a_truncated_file_gives_exit_code_2(tmp_path, capsys, tool):
    code, out, err = run(capsys, tool, "--dir", write(tmp_path, small_cnc()[:-1]))
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert "truncated" in err


def test_a_damaged_error_log_is_shown_and_reported(folder, capsys):
    content = bytearray((folder / "cnc.dat").read_bytes())
    end = put_error(content, 0, 3, 1, "first")
    put_error(content, end, 1, 1, "x" * 400)
    content[-400:] = bytes(400)
    at = content.rindex((424).to_bytes(4, "little"))
    content[at : at + 4] = (9999).to_bytes(4, "little")
    code, out, err = run(capsys, "errors", "--dir", write(folder, content))
    assert code == exit_code.INCONCLUSIVE
    assert "first" in out
    assert "the error log is damaged: entry 1" in err


def test_a_file_without_read_permission_gives_exit_code_2(folder, capsys, monkeypatch):
    def refused(path: Path, *_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("windtunnel.harness.inspect.aeron_dir.os.open", refused)
    code, out, err = run(capsys, "stat", "--dir", folder)
    assert (code, out) == (exit_code.INCONCLUSIVE, "")
    assert err == f"windtunnel: {folder}/cnc.dat: Permission denied\n"


def test_a_hostile_label_does_not_reach_the_terminal(folder, capsys):
    content = bytearray((folder / "cnc.dat").read_bytes())
    put_counter(content, 0, type_id=0, label="\x1b[2J\x07\r\u202eevil\nline")
    _, out, _ = run(capsys, "stat", "--dir", write(folder, content))
    assert "\\x1b[2J\\x07\\r\\u202eevil" in out
    assert not set(out) & {"\x1b", "\x07", "\r", "\u202e"}


@pytest.mark.parametrize("kind", ["dumb", "unknown", None])
def test_a_terminal_without_cursor_control_gets_the_table_once(folder, capsys, monkeypatch, kind):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    if kind is None:
        monkeypatch.delenv("TERM", raising=False)
    else:
        monkeypatch.setenv("TERM", kind)
    code, out, _ = run(capsys, "stat", "--dir", folder)
    assert (code, "1,234,567" in out) == (0, True)


def test_an_output_without_unicode_gets_escapes(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    look.echo_line("caf\u00e9 \ufffd")
    sys.stdout.flush()
    assert raw.getvalue() == b"caf\\xe9 \\ufffd\n"


def test_driver_info_identifies_the_driver(folder, capsys):
    code, out, _ = run(capsys, "driver-info", "--dir", folder)
    found = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert (found["state"], found["pid"], found["counters"]) == ("alive", "4711", "4")
    code, out, _ = run(capsys, "driver-info", "--dir", folder, "--json")
    assert json.loads(out)["state"] == "alive"


@pytest.mark.parametrize("heartbeat_ms", [-1, 1], ids=["closed", "silent"])
def test_a_dead_driver_gives_exit_code_1_and_its_file_is_not_written(
    tmp_path, capsys, heartbeat_ms
):
    write(tmp_path, small_cnc(heartbeat_ms=heartbeat_ms))
    before = (tmp_path / "cnc.dat").read_bytes()
    code, out, _ = run(capsys, "driver-info", "--dir", tmp_path, "--pid")
    assert (code, out) == (exit_code.NOTHING, "4711\n")
    code, out, err = run(capsys, "driver-info", "--dir", tmp_path, "--terminate")
    assert (code, out) == (exit_code.NOTHING, "")
    assert "is not alive" in err
    assert (tmp_path / "cnc.dat").read_bytes() == before


def test_terminate_puts_the_token_into_the_ring(folder, capsys):
    code, out, _ = run(capsys, "driver-info", "--dir", folder, "--terminate", "--token", "sesame")
    assert (code, "requested termination" in out) == (0, True)
    content = (folder / "cnc.dat").read_bytes()
    assert content[RING_AT + 4] == 0x0E
    assert content[RING_AT + 28 : RING_AT + 34] == b"sesame"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "5.logbuffer"
    path.write_bytes(load("loss-unreliable", "image-5.logbuffer"))
    return path


def test_logbuffer_shows_metadata_and_frames(log, capsys):
    code, out, _ = run(capsys, "logbuffer", log)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert out.splitlines()[0] == f"{log}: image"
    assert ["mtu_length", "1408"] in lines
    assert ["18944", "412160", "PAD", "11000000", "288", "18944", "78", "1001", "10", "0"] in lines
    assert [line for line in lines if line and line[0] == "term"] == [
        ["term", "0"],
        ["term", "1"],
        ["term", "2"],
    ]


def test_logbuffer_shows_as_much_as_requested(log, capsys):
    code, out, _ = run(capsys, "logbuffer", log, "--json", "--term", "2", "--limit", "3")
    (term,) = json.loads(out)["terms"]
    assert (code, term["term_index"], len(term["frames"])) == (0, 2, 3)
    assert term["ended_because"].endswith("more frames follow")
    assert term["ended_at"] == term["frames"][-1]["offset"] + 32 * (
        (term["frames"][-1]["frame_length"] + 31) // 32
    )
    _, out, _ = run(capsys, "logbuffer", log, "--json", "--limit", "0")
    assert [each["frames"] for each in json.loads(out)["terms"]] == [[], [], []]


def test_hexdump_shows_one_frame_byte_for_byte(log, capsys):
    content = log.read_bytes()
    _, out, _ = run(capsys, "logbuffer", log, "--json", "--term", "2", "--limit", "2")
    first, second = json.loads(out)["terms"][0]["frames"]
    at, length = 2 * 131072 + second["offset"], second["frame_length"]
    code, out, _ = run(capsys, "logbuffer", log, "--hexdump", f"2:{second['offset']}")
    rows = re.findall(r"^([0-9a-f]{8})  ((?:[0-9a-f]{2} ? ?)+) ", out, re.MULTILINE)
    assert code == 0
    assert b"".join(bytes.fromhex(row) for _, row in rows) == content[at : at + length]
    assert int(rows[0][0], 16) == at
    assert out.splitlines()[-1] == f"{at + length:08x}"
    _, out, _ = run(capsys, "logbuffer", log, "--json", "--hexdump", f"2:{second['offset']}")
    assert bytes.fromhex(json.loads(out)["hex"]) == content[at : at + length]
    code, out, err = run(capsys, "logbuffer", log, "--hexdump", f"2:{second['offset'] - 32}")
    assert (code, out) == (exit_code.NOTHING, "")
    assert f"the frame before begins at 2:{first['offset']}" in err


def test_hexdump_folds_equal_lines_and_shows_only_the_header_of_a_pad(log, capsys):
    content = bytearray(log.read_bytes())
    content[2 * 131072 + 32 : 2 * 131072 + 512] = bytes(480)
    log.write_bytes(content)
    _, out, _ = run(capsys, "logbuffer", log, "--hexdump", "2:0")
    assert out.count("*\n") == 1
    _, out, _ = run(capsys, "logbuffer", log, "--hexdump", "2:2016")
    assert len(out.splitlines()) == 2 + 2 + 1, "a PAD has only a header"


@pytest.mark.parametrize("length", [0, 300_000])
def test_a_truncated_log_gives_exit_code_2(log, capsys, length):
    os.truncate(log, length)
    code, out, _ = run(capsys, "logbuffer", log)
    assert (code, out) == (exit_code.INCONCLUSIVE, "")


def test_a_log_that_is_truncated_while_it_is_read_gives_exit_code_2(log, capsys, monkeypatch):
    def then_shrink(*arguments: Any) -> log_buffer.LogBuffer:
        found = log_buffer.read_log_buffer(*arguments)
        os.truncate(log, 0)
        return found

    monkeypatch.setattr(log_source, "read_log_buffer", then_shrink)
    code, out, err = run(capsys, "logbuffer", log, "--json")
    assert (code, "truncated while it was being read" in err) == (exit_code.INCONCLUSIVE, True)
    assert {each["ended_because"] for each in json.loads(out)["terms"]} == {log_buffer.CUT_SHORT}


def test_a_missing_log_gives_exit_code_1(tmp_path, capsys):
    code, _, err = run(capsys, "logbuffer", tmp_path / "no.logbuffer")
    assert (code, "no log buffer" in err) == (exit_code.NOTHING, True)


# The archive's tools are another program, which has its own test.
IN_HERE = [each for each in DRIVER_COMMANDS if each.name != "archive"]


@pytest.mark.parametrize("command", IN_HERE, ids=lambda command: command.name)
def test_help_has_examples_and_names_exit_codes(command, capsys):
    assert windtunnel.commands[command.name] is command
    _, out, _ = run(capsys, command.name, "--help")
    assert out.count(f"  windtunnel {command.name}") >= 2
    assert "Exit codes: 0 " in out
    assert all(len(line) <= 100 for line in out.splitlines())


def picture(view: View, changed: set[object], lines_max: int) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=60, height=lines_max, force_terminal=True)
    console.print(drawn(view, changed, lines_max))
    return console.file.getvalue()


def test_the_live_view_fits_its_window_and_marks_changes():
    rows = [("1,000", f"label [bold]{index}[/bold] " + "x" * 90) for index in range(50)]
    columns = (Column("value", True), Column("label"))
    view = View("heading", columns, rows, {}, "closing", keys=list(range(50)))
    text = picture(view, {1}, 20)
    assert "35 more lines" in text
    assert len(text.splitlines()) <= 20
    assert "1,000  label [bold]3[/bold]" in text, "all columns, and no markup is obeyed"
    marked = [line for line in text.splitlines() if line.startswith("\x1b[1m")]
    assert len(marked) == 2, "the titles, and the row that changed"
    assert "more lines" not in picture(view, set(), 60)


def test_a_view_without_rows_shows_no_titles():
    view = View("heading", (Column("id"),), [], {}, closing="0 streams")
    assert list(plain_lines(view)) == ["heading", "0 streams"]


def test_printable_escapes_only_control_characters():
    assert printable("a \u00e9\n\tb") == "a \u00e9\n    b"
    assert printable("\x00\u2028") == "\\x00\\u2028"


def test_times_are_local_with_their_offset(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert time_text(1_795_218_059_007) == "2026-11-21 05:10:59.007+0530"
    finally:
        monkeypatch.undo()
        time.tzset()
    assert time_text(1 << 62) == f"{1 << 62} ms"


def read_until(terminal: int, wanted: bytes) -> bytes:
    out = b""
    deadline_s = time.monotonic() + PATIENCE_S
    while wanted not in out:
        assert time.monotonic() < deadline_s, out
        if select.select([terminal], [], [], 0.1)[0]:
            out += os.read(terminal, 1 << 16)
    return out


def test_on_a_terminal_it_is_live_until_interrupted(folder):
    parent, child = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "windtunnel.harness",
        "stat",
        "--interval",
        "0.05",
        "--dir",
        str(folder),
    ]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        command, stdin=child, stdout=child, stderr=child, env=environment, start_new_session=True
    )
    os.close(child)
    try:
        assert b"1,234,567" in read_until(parent, b"Bytes received")
        content = bytearray((folder / "cnc.dat").read_bytes())
        put_counter(content, 1, type_id=0, label="Bytes received", value=424_242)
        (folder / "cnc.dat").write_bytes(content)
        read_until(parent, b"424,242")
        (folder / "cnc.dat").unlink()
        read_until(parent, b"no driver")
        write(folder, content)
        read_until(parent, b"424,242")
        process.send_signal(signal.SIGINT)
        read_until(parent, b"\x1b[?1049l")
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(parent)


def test_an_interrupt_that_comes_while_drawing_ends_the_live_view():
    """There is another thread that could receive the signal, as those of numpy could."""
    before = signal.getsignal(signal.SIGINT)
    finished = threading.Event()
    other = threading.Thread(target=finished.wait)
    other.start()
    try:
        with look._interruption() as came_within:
            assert not came_within(0)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert came_within(0)
    finally:
        finished.set()
        other.join()
    assert signal.getsignal(signal.SIGINT) is before
