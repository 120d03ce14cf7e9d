"""The asyncio client: concurrent tasks, cancelled calls, unclaimed errors."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests.unit.driver.archive.client.scripted_archive import ARCHIVE_ID, error, ok
from windtunnel.driver.archive.client import ArchiveClosedError, ArchiveError, AsyncAeronArchive
from windtunnel.driver.archive.protocol.codes import ErrorCode
from windtunnel.driver.archive.protocol.requests import (
    AuthConnectRequest,
    StartPositionRequest,
    StopPositionRequest,
)


@asynccontextmanager
async def connected(env, **settings):
    """An asyncio client that is connected to the scripted archive."""

    async def run():
        while True:
            env.turn(0)
            await asyncio.sleep(0)

    running = asyncio.create_task(run())
    try:
        async with await AsyncAeronArchive.connect(
            env.aeron, env.context(**settings), env.clock
        ) as client:
            yield client
    finally:
        running.cancel()


async def test_each_task_receives_the_response_to_its_request(env):
    held = []
    env.archive.script |= {
        StartPositionRequest: lambda request: held.append(request),
        StopPositionRequest: lambda request: [ok(request, 2), ok(held[0], 1)],
    }
    async with connected(env) as client:
        assert client.archive_id == ARCHIVE_ID
        first = asyncio.create_task(client.start_position(7))
        while not held:
            await asyncio.sleep(0)
        assert await client.stop_position(7) == 2
        assert await first == 1
    assert client.is_closed
    with pytest.raises(ArchiveClosedError):
        await client.start_position(7)


async def test_a_cancelled_call_leaves_no_pending_response(env):
    held = []
    env.archive.script[StartPositionRequest] = held.append
    async with connected(env) as client:
        waiting = asyncio.create_task(client.start_position(7))
        while not held:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        env.archive.send(ok(held[0], 1))
        env.archive.script[StartPositionRequest] = lambda request: [ok(request, 5)]
        assert await client.start_position(7) == 5
        assert client.session._responses == {}


async def test_errors_are_raised_or_handled(env):
    errors = []
    env.archive.script[StartPositionRequest] = lambda request: [
        error(request, ErrorCode.GENERIC, correlation_id=1_000_000),
        error(request, ErrorCode.UNKNOWN_RECORDING),
    ]
    async with connected(env, error_handler=errors.append) as client:
        with pytest.raises(ArchiveError, match="UNKNOWN_RECORDING"):
            await client.start_position(7)
        assert [each.correlation_id for each in errors] == [1_000_000]


async def test_a_connection_that_is_cancelled_is_closed(env):
    env.archive.script.clear()

    async def cancelled():
        async with connected(env):
            raise AssertionError("no response was sent")

    connecting = asyncio.create_task(cancelled())
    while not env.archive.of(AuthConnectRequest):
        await asyncio.sleep(0)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    env.until(lambda: not env.archive.publication.is_connected)
    env.until(lambda: not env.archive.subscription.is_connected)
