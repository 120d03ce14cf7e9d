"""Compiles all kernels of the driver, client and archive before a stream needs them.

    python -m windtunnel.driver.warm_up [--mode SHARED ...] [--patience SECONDS]

The command starts a driver in each threading mode, or in the given modes, sends streams to itself
through all API methods, and records and replays a stream. It prints one line per part with its
duration in seconds. A second run only loads the kernels, which takes a few seconds.
"""

import argparse
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from windtunnel.driver.archive.server import warm_up as archive_warm_up
from windtunnel.driver.base.errors import DriverError
from windtunnel.driver.client.aeron import Aeron
from windtunnel.driver.client.image.assembler import FragmentAssembler
from windtunnel.driver.client.image.fragment_batch import FragmentBatch
from windtunnel.driver.client.image.image import Image
from windtunnel.driver.client.publication.claim import Claim
from windtunnel.driver.client.publication.publication import Publication
from windtunnel.driver.kernels import cache_error
from windtunnel.driver.kernels.warm_up_progress import part, report
from windtunnel.driver.kernels.warm_up_signals import end_on_signals
from windtunnel.driver.media_driver.context import (
    DEDICATED,
    INVOKER,
    SHARED,
    SHARED_NETWORK,
    Context,
)
from windtunnel.driver.media_driver.media_driver import MediaDriver

STREAM_ID = 1001
MODES = (INVOKER, SHARED, SHARED_NETWORK, DEDICATED)
TIMEOUT_S = 60.0
"""Default timeout of one warm-up step, which may include compilation."""
IDLE_S = 0.0002
LONG_MESSAGE_BYTES = 5_000
"""Length of a message that needs more than one fragment."""

Until = Callable[[str, Callable[[], object]], None]
"""A function that waits for a condition, or raises WarmUpError with the name of the step."""


class WarmUpError(Exception):
    """A warm-up step timed out. The message names the step."""


def _until(timeout_s: float, step: str, condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise WarmUpError(f"{step}: timed out after {timeout_s:g} s")
        time.sleep(IDLE_S)


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _context(folder: Path, mode: str) -> Context:
    # Sleeping agents leave more CPU time to the compiler.
    return Context(
        dir=folder / mode.lower(), threading_mode=mode, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us", term_buffer_length=65_536, timer_interval_ns=50_000_000,
        publication_linger_timeout_ns=100_000_000, name_resolver="driver",
        resolver_name="warm-up", resolver_interface="127.0.0.1:0",
    )  # fmt: skip


def _write(publication: Publication, until: Until) -> int:
    """Write one message with each publication method. Returns the number of messages."""
    long = np.zeros(LONG_MESSAGE_BYTES, np.uint8)
    parts = np.zeros(30, np.uint8)

    def claim() -> int:
        claimed = publication.try_claim(10)
        if isinstance(claimed, Claim):
            claimed.commit()
            return 1
        return claimed

    def batch() -> int:
        return publication.offer_batch(parts, np.array([10, 20], np.int64))[0]

    methods: list[Callable[[], int]] = [
        lambda: publication.offer(b"bytes"),
        lambda: publication.offer(bytearray(10)),
        lambda: publication.offer(memoryview(b"view")),
        lambda: publication.offer(long),
        lambda: publication.offer(b"supplied", reserved_value=len),
        lambda: publication.offer_parts([b"one", b"two"]),
        batch,
        claim,
    ]
    for number, method in enumerate(methods):
        until(f"write method {number}", partial(_is_written, method))
    aborted = publication.try_claim(10)
    if isinstance(aborted, Claim):
        aborted.abort()
    return len(methods) + 1


def _read(image: Image, message_count: int, method: int, until: Until) -> None:
    """Read all messages of an image with one of its poll methods. A block poll may return several
    messages at once.
    """
    seen: list[int] = []
    batch = FragmentBatch()
    assembler = FragmentAssembler(lambda payload, header: seen.append(header.position))

    def poll_batch() -> int:
        count = image.poll_batch(batch)
        seen.extend(range(count))
        return count

    polls: tuple[Callable[[], int], ...] = (
        lambda: image.poll(assembler),
        lambda: image.poll_frames(lambda position, frame: seen.append(position)),
        poll_batch,
        lambda: image.block_poll(lambda *block: seen.append(block[3]), 65_536),
    )
    expected = message_count if method < 3 else 1
    until(f"poll method {method}", lambda: polls[method]() >= 0 and len(seen) >= expected)


def _exchange(driver: MediaDriver, until: Until, *, is_exclusive: bool) -> None:
    channel = f"aeron:udp?endpoint=127.0.0.1:{_free_port()}"
    with Aeron(driver.context.dir) as aeron:
        subscriptions = [aeron.add_subscription(channel, STREAM_ID) for _ in range(4)]
        add = aeron.add_exclusive_publication if is_exclusive else aeron.add_publication
        publication = add(channel, STREAM_ID)
        until("connecting", lambda: publication.is_connected)
        until("images", lambda: all(each.images for each in subscriptions))
        count = _write(publication, until)
        assert publication.position <= publication.position_limit
        for method, subscription in enumerate(subscriptions):
            _read(subscription.images[0], count, method, until)
        publication.close()
        for image in [image for each in subscriptions for image in each.images]:
            until("the end of the stream", partial(_is_drained, image))
        # The driver's conductor calls (and compiles) some kernels only after the end of a stream.
        logs = driver.context.dir / "publications"
        until("the end of the publication", lambda: not any(logs.iterdir()))


def _record(driver: MediaDriver, folder: Path, until: Until) -> None:
    folder.mkdir()
    with Aeron(driver.context.dir) as aeron:
        archive_warm_up.warm_up(aeron, folder, until)


def _is_written(method: Callable[[], int]) -> bool:
    return method() > 0


def _is_drained(image: Image) -> bool:
    image.poll(lambda payload, header: None)
    return image.is_end_of_stream


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m windtunnel.driver.warm_up")
    parser.add_argument(
        "--mode",
        action="append",
        choices=MODES,
        help="threading mode, may be repeated (default: all modes)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=TIMEOUT_S,
        help="timeout of one step, in seconds (default: %(default)s)",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Compile all kernels. Returns the process exit code."""
    given = _arguments(argv)
    until: Until = partial(_until, given.patience)
    started_s = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="windtunnel-warm-up-") as name:
            folder = Path(name)
            for mode in given.mode or MODES:
                with part(f"a {mode} driver"):
                    MediaDriver(_context(folder, mode)).close()
            with MediaDriver(_context(folder / "own", SHARED)) as driver:
                with part("a concurrent publication and its readers"):
                    _exchange(driver, until, is_exclusive=False)
                with part("an exclusive publication and its readers"):
                    _exchange(driver, until, is_exclusive=True)
                with part("a recording and its replay"):
                    _record(driver, folder / "archive", until)
    except (WarmUpError, DriverError) as error:
        print(f"warm-up: {error}{cache_error.advice(error.__cause__)}", file=sys.stderr)
        return 1
    report(started_s, "total")
    return 0


if __name__ == "__main__":
    end_on_signals()
    sys.exit(main())
