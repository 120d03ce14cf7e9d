"""The connection to the process of a lab, with a small program in its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from windtunnel.harness.lab import connection as module
from windtunnel.harness.lab.connection import Connection
from windtunnel.harness.lab.errors import LabError

START = """
import json, socket, sys
link = socket.socket(fileno=int(sys.argv[1]))
lines = link.makefile("r")
def send(**document):
    link.sendall(json.dumps(document).encode() + b"\\n")
options = json.loads(lines.readline())["open"]
"""
ECHO = """
send(progress="lab")
send(ready={"run_dir": options["x"]})
kept = []
for line in lines:
    request = json.loads(line)
    if request["do"] == "close":
        send(id=request["id"], ok={})
        send(end={"outcome": "PASS", "reason": "good", "run_dir": "y"})
        break
    if request["do"] == "die":
        sys.exit("a reason")
    kept.append(request)
    if request["do"] == "fail":
        send(id=request["id"], error="no such thing")
    elif request["do"] == "now":
        for each in reversed(kept):
            send(id=each["id"], ok={"do": each["do"]})
"""


@asynccontextmanager
async def connected(folder: Path, program: str) -> AsyncIterator[Connection]:
    """Return a connection to a program in place of a lab's process."""
    (folder / "made_server.py").write_text(START + program)
    with (
        patch.object(module, "SERVER", "made_server"),
        patch.dict("os.environ", {"PYTHONPATH": str(folder)}),
    ):
        found = Connection()
        try:
            yield found
        finally:
            await found.close()


async def test_requests_are_answered_in_any_order(tmp_path: Path) -> None:
    async with connected(tmp_path, ECHO) as connection:
        assert await connection.open({"x": "runs/one"}) == {"run_dir": "runs/one"}
        assert connection.progress == "lab"
        later = asyncio.create_task(connection.request("later"))
        with pytest.raises(LabError, match="no such thing"):
            await connection.request("fail")
        assert await connection.request("now") == {"do": "now"}
        assert await later == {"do": "later"}
        assert (await connection.end())["outcome"] == "PASS"
        with pytest.raises(LabError, match="the lab has ended: PASS: good"):
            await connection.request("now")


async def test_pending_requests_fail_when_the_process_ends(tmp_path: Path) -> None:
    async with connected(tmp_path, ECHO) as connection:
        await connection.open({"x": ""})
        waiting = asyncio.create_task(connection.request("later"))
        with pytest.raises(LabError, match="process has ended"):
            await connection.request("die")
        with pytest.raises(LabError, match="process has ended"):
            await waiting
        with pytest.raises(LabError):
            await connection.end()


async def test_a_request_to_a_process_that_has_just_died_says_why(tmp_path: Path) -> None:
    program = "send(ready={'run_dir': ''}); lines.readline(); sys.exit('a reason')"
    async with connected(tmp_path, program) as connection:
        await connection.open({})
        waiting = asyncio.create_task(connection.request("later"))
        await asyncio.sleep(0)
        # Nothing runs in between, so that the next request is written before the end is read.
        assert connection._process is not None
        connection._process.wait()
        for request in (connection.request("late"), waiting):
            with pytest.raises(LabError, match="process has ended: a reason"):
                await request


async def test_a_process_that_dies_before_it_has_read_all_says_why(tmp_path: Path) -> None:
    program = """
send(ready={"run_dir": ""})
import select
select.select([link], [], [])
sys.exit("a reason")
"""
    async with connected(tmp_path, program) as connection:
        await connection.open({})
        with pytest.raises(LabError, match="process has ended: a reason"):
            await connection.request("never read")


async def test_a_lab_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    async with connected(tmp_path, "send(failed='no privileges')") as connection:
        with pytest.raises(LabError, match="no privileges"):
            await connection.open({})


async def test_a_lab_that_ends_before_it_is_ready_says_why(tmp_path: Path) -> None:
    program = "send(end={'outcome': 'HARNESS', 'reason': 'no disk', 'run_dir': ''})"
    async with connected(tmp_path, program) as connection:
        with pytest.raises(LabError, match="the lab has ended: HARNESS: no disk"):
            await connection.open({})


async def test_an_invalid_document_breaks_the_connection(tmp_path: Path) -> None:
    async with connected(tmp_path, r"link.sendall(b'nonsense\n'); lines.readline()") as connection:
        with pytest.raises(LabError, match="is broken"):
            await connection.open({})


async def test_a_request_that_is_given_up_is_forgotten(tmp_path: Path) -> None:
    async with connected(tmp_path, ECHO) as connection:
        await connection.open({"x": ""})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.request("later"), 0.05)
        assert await connection.request("now") == {"do": "now"}
        await connection.end()


async def test_a_request_before_the_connection_is_open_is_an_error() -> None:
    with pytest.raises(LabError, match="the lab is not open"):
        await Connection().request("now")
