"""A log written by this client equals the real client's byte for byte, on either driver.

Both write the same messages with the same calls from the same position, across the end of a term.
Then the whole file of the publication is compared: terms, tails, metadata. Only the ids below are
random, and those are fixed or excluded.
"""

import time

import numpy as np
import pytest

from tests.peer.ports import free_port
from tests.peer.streams import until
from tests.peer.test_real_aeron_beside_ours import DRIVERS, ENDS, ends

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

TERM_LENGTH, METADATA_LENGTH = 65_536, 4_096
SESSION_ID, INITIAL_TERM_ID, START = 1234567, -3, 32_768
LENGTHS = (0, 1, 31, 32, 1_376, 1_377, 5_000, 8_192, 100, 7_777)

CORRELATION_ID = slice(256, 264)
"""The correlation id depends on the number of earlier commands. All other bytes are equal."""
RANDOM = (CORRELATION_ID,)
SETTLED_S, UNEQUAL_S = 2.0, 30.0
"""Time without a change after which a log is final; timeout for an expected log."""


def channel():
    return (
        f"aeron:udp?endpoint=127.0.0.1:{free_port()}|term-length=64k|mtu=1408"
        f"|session-id={SESSION_ID}|init-term-id={INITIAL_TERM_ID}|term-id={INITIAL_TERM_ID}"
        f"|term-offset={START}|ssc=false"
    )


def write_all(publication, poll, *, is_real, is_exclusive):
    """Write messages with each kind of call."""

    def written(way):
        def is_taken():
            poll()
            position = way()
            return position if isinstance(position, int) and position > 0 else None

        until(is_taken, "offering")

    def claimed(ends):
        claims = []

        def is_claimed():
            poll()
            claim = publication.try_claim(77)
            if hasattr(claim, "commit"):
                claims.append(claim)
            return claims

        until(is_claimed, "claiming")
        view = claims[0].buffer if is_real else claims[0].payload
        view[:] = b"c" * 77
        getattr(claims[0], ends)()

    offer_parts = publication.offerv if is_real else publication.offer_parts
    seven = 7 if is_real else lambda frame: 7
    for number, length in enumerate(LENGTHS):
        message = np.random.default_rng(number).bytes(length)
        written(lambda message=message: publication.offer(message))
        written(lambda message=message: publication.offer(message, reserved_value=seven))
        written(lambda: offer_parts([b"in", b"three", b"parts"]))
        claimed("commit" if number % 2 else "abort")
    if is_exclusive:
        written(lambda: publication.append_padding(1_000))
    written(lambda: publication.offer(b"last"))


def file_of(directory, unlike):
    """Return the log file of the only publication, without the bytes that may differ."""
    (path,) = (directory / "publications").glob("*.logbuffer")
    log = np.fromfile(path, dtype=np.uint8)
    for field in unlike:
        log[log.size - METADATA_LENGTH :][field] = 0
    return log


def make_log(folder, driver, client, *, is_exclusive, unlike, expected=None):
    """Return the publication's log once all was read and the driver has cleaned old terms.

    Without an expected log, wait until the log no longer changes.
    """
    folder.mkdir()
    is_real, where = client == "real", channel()
    with DRIVERS[driver](folder) as directory, ends(ENDS[client](directory)) as (end,):
        reading = end.subscribe(where)
        publication = end.publish(where, is_exclusive=is_exclusive)
        until(lambda: end.is_connected(publication), "connecting")
        write_all(publication, reading.poll, is_real=is_real, is_exclusive=is_exclusive)
        until(lambda: reading.poll() or reading.position == publication.position, "reading")
        assert publication.position > TERM_LENGTH
        log, since_s = file_of(directory, unlike), time.monotonic()

        def is_settled():
            nonlocal log, since_s
            before, log = log, file_of(directory, unlike)
            past_s = time.monotonic() - since_s
            if expected is not None:
                return np.array_equal(log, expected) or past_s > UNEQUAL_S
            is_same = np.array_equal(log, before)
            if not is_same:
                since_s = time.monotonic()
            return is_same and past_s > SETTLED_S

        until(is_settled, "the log to settle")
        return log


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("is_exclusive", [True, False], ids=["exclusive", "concurrent"])
@pytest.mark.parametrize(
    ("driver", "client"), [("real", "ours"), ("ours", "ours"), ("ours", "real")]
)
def test_the_log_equals_that_of_the_real_client(tmp_path, driver, client, is_exclusive):
    unlike = RANDOM
    reference = make_log(
        tmp_path / "reference", "real", "real", is_exclusive=is_exclusive, unlike=unlike
    )
    assert np.count_nonzero(reference) > TERM_LENGTH // 2
    written = make_log(
        tmp_path / "written", driver, client,
        is_exclusive=is_exclusive, unlike=unlike, expected=reference,
    )  # fmt: skip
    different = np.flatnonzero(written != reference)
    assert different.tolist() == [], f"metadata begins at {reference.size - METADATA_LENGTH}"
