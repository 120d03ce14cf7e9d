"""The tools inspect this driver and the real one during traffic; the clients know the values."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from tests.peer.streams import STREAM_ID, OurClient, RealClient, channel, until
from windtunnel.driver.media_driver.context import SHARED, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.cli.root import main

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

ENDS = {"ours": OurClient, "real": RealClient}
MESSAGES = [bytes([number % 256]) * (1 + number * 7919 % 1300) for number in range(60)]
"""Messages of one frame each, less than a term in all, so that the log contains every one."""
BETWEEN_LOOKS_S = 0.05
STARTED_FOR = "real", "ours"
"""The driver and client for which each tool runs as a process. Others call it directly."""


@contextmanager
def our_driver(folder):
    with MediaDriver(Context(dir=folder / "ours", threading_mode=SHARED)):
        yield folder / "ours"


@contextmanager
def real_driver(folder):
    with pyaeron.MediaDriver(dir=str(folder / "real"), threading="shared"):
        yield folder / "real"


DRIVERS = {"ours": our_driver, "real": real_driver}


def program(*arguments):
    """Return the output of a tool that runs in its own process, as a user starts it."""
    command = [sys.executable, "-m", "windtunnel.harness", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def tool(*arguments):
    """Return the output of a tool called in this process, which is faster."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([*map(str, arguments)])
    assert (code, err.getvalue()) == (0, "")
    return json.loads(out.getvalue()) if "--json" in arguments else out.getvalue()


def slowly(condition):
    """Check the condition at a low rate, because a driver updates the value only sometimes."""
    return condition() or time.sleep(BETWEEN_LOOKS_S)


@contextmanager
def stream(directory, client, where):
    """Yield a publication and a reader of it, after all messages were delivered."""
    end = ENDS[client](directory)
    try:
        reading = end.subscribe(where)
        publication = end.publish(where, is_exclusive=True)
        until(lambda: end.is_connected(publication), "connecting")
        for message in MESSAGES:
            until(lambda message=message: reading.poll() or publication.offer(message) > 0, "offer")
        until(lambda: reading.poll() or len(reading.messages) == len(MESSAGES), "delivery")
        yield publication, reading
    finally:
        end.close()


def values(document, name):
    return {
        counter["value"]
        for stream in document["streams"]
        for counter in stream["counters"]
        if counter["name"].startswith(name)
    }


@pytest.mark.parametrize(
    ("driver", "client"),
    [
        ("real", "real"),
        ("ours", "ours"),
        pytest.param("real", "ours", marks=pytest.mark.full),
        pytest.param("ours", "real", marks=pytest.mark.full),
    ],
)
def test_tools_agree_with_the_clients(tmp_path, driver, client):
    run_tool = program if (driver, client) == STARTED_FOR else tool
    with (
        DRIVERS[driver](tmp_path) as directory,
        stream(directory, client, channel()) as (publication, reading),
    ):
        end = publication.position
        assert reading.position == end

        def streams():
            return run_tool("streams", "--json", "--dir", directory)

        until(
            lambda: slowly(lambda: values(streams(), "pub-pos") == {end}),
            "the sampled producer position",
        )
        shown = streams()
        assert {each["stream_id"] for each in shown["streams"]} == {STREAM_ID}
        assert {each["session_id"] for each in shown["streams"]} == {publication.session_id}
        for name in ("pub-pos", "snd-pos", "rcv-hwm", "rcv-pos", "sub-pos"):
            assert values(shown, name) == {end}, name
        for name in ("snd-naks-received", "rcv-naks-sent"):
            assert values(shown, name) == {0}, "traffic without loss"

        stat = run_tool("stat", "--json", "--type", "^[1-5]$", "--dir", directory)
        assert {each["label"].partition(":")[0] for each in stat["counters"]} == {
            "pub-lmt", "snd-pos", "rcv-hwm", "rcv-pos", "sub-pos"
        }  # fmt: skip
        assert stat["driver"]["pid"] == os.getpid()
        # From another process, whose id is not the driver's.
        assert program("driver-info", "--pid", "--dir", directory) == f"{os.getpid()}\n"
        assert run_tool("driver-info", "--json", "--dir", directory)["state"] == "alive"

        backlog = run_tool("backlog", "--json", "--dir", directory)
        ends = {each["kind"]: each for stream in backlog["streams"] for each in stream["ends"]}
        assert set(ends) == {"publisher", "sender", "receiver", "subscriber"}
        assert {each["position"] for each in ends.values()} == {end}
        assert {ends[kind]["backlog_bytes"] for kind in ("sender", "receiver", "subscriber")} == {0}
        assert ends["publisher"]["window_bytes"] > 0
        check_logs(run_tool, directory, publication.session_id, end)
        assert run_tool("loss", "--json", "--dir", directory)["losses"] == []
        assert run_tool("errors", "--json", "--dir", directory)["errors"] == []


def check_logs(run_tool, directory, session_id, end):
    for folder in ("publications", "images"):
        (path,) = (directory / folder).iterdir()
        shown = run_tool("logbuffer", path, "--json")
        frames = [frame for term in shown["terms"] for frame in term["frames"]]
        assert [frame["frame_length"] - 32 for frame in frames] == [len(each) for each in MESSAGES]
        assert {frame["session_id"] for frame in frames} == {session_id}
        assert frames[-1]["position"] + (frames[-1]["frame_length"] + 31) // 32 * 32 == end
        frame = run_tool("logbuffer", path, "--json", "--hexdump", f"0:{frames[1]['offset']}")
        assert bytes.fromhex(frame["hex"])[32:] == MESSAGES[1]
    assert shown["log_type"] == "image"


@pytest.mark.parametrize("driver", ["real", "ours"])
def test_an_ipc_stream_has_a_backlog_against_its_publication(tmp_path, driver):
    with DRIVERS[driver](tmp_path) as directory:
        client = RealClient(directory)
        try:
            where = "aeron:ipc?term-length=64k"
            reading = client.subscribe(where)
            publication = client.publish(where, is_exclusive=True)
            until(lambda: client.is_connected(publication), "connecting")
            until(lambda: publication.offer(b"unread") > 0, "offering")

            def backlog():
                shown = tool("backlog", "--json", "--dir", directory)
                return [each for stream in shown["streams"] for each in stream["ends"]]

            until(
                lambda: slowly(lambda: backlog()[-1]["backlog_bytes"] == 64),
                "the sampled producer position",
            )
            assert [each["kind"] for each in backlog()] == ["publisher", "subscriber"]
            until(lambda: reading.poll() or reading.messages, "delivery")
            until(lambda: backlog()[-1]["backlog_bytes"] == 0, "the subscriber's position")
        finally:
            client.close()


@pytest.mark.parametrize("driver", ["real", "ours"])
def test_a_driver_that_denies_a_termination_request_continues(tmp_path, driver):
    with DRIVERS[driver](tmp_path) as directory:
        output = tool("driver-info", "--terminate", "--token", "x" * 13, "--dir", directory)
        assert output == f"requested termination of the driver in {directory}\n"
        client = RealClient(directory)
        client.subscribe(channel())
        client.close()
        assert tool("errors", "--json", "--dir", directory)["errors"] == []
        assert tool("driver-info", "--json", "--dir", directory)["state"] == "alive"
    closed = subprocess.run(
        [sys.executable, "-m", "windtunnel.harness", "driver-info", "--dir", str(directory)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert closed.returncode == 1
