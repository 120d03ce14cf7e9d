"""Process `windtunnel-driver`: output, errors, and shutdown."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from windtunnel.driver import __main__ as process
from windtunnel.driver.cnc import cnc_file, ring_buffer
from windtunnel.driver.media_driver.context import SETTINGS

QUIET = {
    "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "sleep-ns",
    "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "200us",
}

SIGNALS = 200


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the entry point in this process. Returns exit code, standard output and error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["windtunnel-driver", *arguments])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        code = process.main()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    for variable in list(os.environ):
        if variable.startswith("AERON_"):
            monkeypatch.delenv(variable)
    return call


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_has_examples(run, option):
    code, out, err = run(option)
    assert (code, err) == (0, "")
    assert "examples:" in out
    assert all(len(line) <= 100 for line in out.splitlines())


@pytest.mark.parametrize("option", ["-v", "--version"])
def test_the_version_is_printed(run, option):
    code, out, _ = run(option)
    assert code == 0
    assert "1.53.0" in out


def test_the_settings_are_listed(run):
    code, out, _ = run("--settings")
    assert code == 0
    assert out.count("\n    default ") == len(SETTINGS)
    code, out, _ = run("--settings", "--json")
    assert len(json.loads(out)["settings"]) == len(SETTINGS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-Daeron.mtu.length=8kk"], "AERON_MTU_LENGTH=8kk"),
        (["-Daeron.mtu.lenght=8k"], "did you mean AERON_MTU_LENGTH?"),
        (["--fast"], "unknown option --fast"),
        (["none.properties"], "cannot read none.properties"),
    ],
)
def test_an_error_is_one_line_and_exit_1(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("windtunnel-driver: ")
    assert message in err
    assert err.count("\n") == 1


def test_too_little_memory_is_one_line_and_exit_1(run, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 20.0 MiB")

    monkeypatch.setattr("windtunnel.driver.media_driver.media_driver.MediaDriver", fail)
    code, out, err = run("--dir", str(tmp_path / "aeron"))
    assert (code, out) == (1, "")
    text = "not enough memory (see `ulimit -v`): Unable to allocate 20.0 MiB"
    assert err == f"windtunnel-driver: {text}\n"


@contextmanager
def started(directory, *arguments, **settings) -> Iterator[subprocess.Popen[str]]:
    """Start a driver process; kill it if the test did not end it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AERON_")}
    child = subprocess.Popen(
        [sys.executable, "-m", "windtunnel.driver", "--dir", str(directory), *arguments],
        env=environment | QUIET | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def lines_until_ready(child):
    assert child.stdout is not None
    lines = []
    for line in child.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("driver ready"):
            break
    return lines


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_shuts_it_down(tmp_path, number):
    directory = tmp_path / "aeron"
    with started(directory, "-Daeron.print.configuration=true") as child:
        lines = lines_until_ready(child)
        assert lines[0] == "windtunnel-driver {"
        assert any(line.split() == ["threading_mode=SHARED", "(environment)"] for line in lines)
        assert any(line.split() == [f"dir={directory}", "(--dir)"] for line in lines)
        assert lines[-1] == f"driver ready pid={child.pid} dir={directory}"
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (0, "", "")
    cnc = cnc_file.open_existing(directory)
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [(signal.SIGTERM, -signal.SIGTERM, ""), (signal.SIGINT, 1, "windtunnel-driver: interrupted")],
)
@pytest.mark.parametrize("words", [["windtunnel.driver"], ["windtunnel.driver.archive", "run"]])
def test_a_signal_ends_it_while_it_reads_a_pipe_that_nobody_writes_to(
    tmp_path, words, number, code, text
):
    pipe = tmp_path / "pipe.properties"
    os.mkfifo(pipe)
    child = subprocess.Popen(
        [sys.executable, "-m", *words, str(pipe)],
        env=os.environ | QUIET,
        stderr=subprocess.PIPE,
        text=True,
        # As a shell does for a command in the foreground.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        with pipe.open("w"):  # It waits until the child has opened it.
            child.send_signal(number)
            _, err = child.communicate(timeout=20)
    finally:
        child.kill()
        child.communicate()
    if number == signal.SIGINT and words[-1] == "run":
        code, text = 130, "windtunnel archive: interrupted"
    assert (child.returncode, err.strip()) == (code, text)


def test_a_full_stdout_is_one_line_and_exit_1(tmp_path):
    for arguments in (["--settings"], ["-v"], ["--dir", str(tmp_path / "aeron")]):
        with open("/dev/full", "wb") as full:
            command = [sys.executable, "-m", "windtunnel.driver", *arguments]
            ended = subprocess.run(
                command,
                env=os.environ | QUIET,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
            )
        text = "windtunnel-driver: stdout: No space left on device\n"
        assert (ended.returncode, ended.stderr) == (1, text)
    cnc = cnc_file.open_existing(tmp_path / "aeron")
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()


def test_a_closed_pipe_ends_a_listing_silently():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "windtunnel.driver", "--settings"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (process.BROKEN_PIPE, "")


def test_repeated_signals_shut_it_down(tmp_path):
    """Signals may arrive while a previous one is handled."""
    with started(tmp_path / "aeron") as child:
        lines_until_ready(child)
        for _ in range(SIGNALS):
            child.terminate()
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (0, "", "")


@pytest.mark.full
def test_a_driver_takes_over_the_directory_of_a_killed_one(tmp_path):
    directory = tmp_path / "aeron"
    with started(directory) as first:
        lines_until_ready(first)
        with started(directory) as second:
            _, err = second.communicate(timeout=60)
            assert second.returncode == 1
            assert "active media driver detected" in err
            assert err.count("\n") == 1
        first.kill()
        first.wait()
        with started(directory, AERON_DRIVER_TIMEOUT="1") as third:
            assert lines_until_ready(third)[-1].startswith("driver ready")
            third.terminate()
            third.communicate(timeout=60)
            assert third.returncode == 0


@pytest.mark.full
def test_a_signal_during_startup_shuts_it_down(tmp_path):
    with started(tmp_path / "aeron", AERON_PRINT_CONFIGURATION="true") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "windtunnel-driver {\n"
        child.terminate()
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
    cnc = cnc_file.open_existing(tmp_path / "aeron")
    assert cnc.heartbeat_ms() == ring_buffer.HEARTBEAT_OF_CLOSED
    cnc.close()
