"""This driver and client with the real ones: client to driver, and driver to driver over UDP."""

from contextlib import contextmanager

import pytest

from tests.peer.streams import MESSAGES, OurClient, RealClient, exchange
from windtunnel.driver.media_driver.context import SHARED, Context
from windtunnel.driver.media_driver.media_driver import MediaDriver
from windtunnel.harness.dissect.driver_files.cnc_file import map_cnc
from windtunnel.harness.dissect.driver_files.counter_key import RECEIVER_POSITION

pyaeron = pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

ENDS = {"ours": OurClient, "real": RealClient}


@contextmanager
def our_driver(folder):
    context = Context(
        dir=folder / "ours", threading_mode=SHARED, shared_idle_strategy="sleep-ns",
        shared_idle_init_args="50us",
    )  # fmt: skip
    with MediaDriver(context):
        yield context.dir


@contextmanager
def real_driver(folder):
    with pyaeron.MediaDriver(dir=str(folder / "real"), threading="shared"):
        yield folder / "real"


DRIVERS = {"ours": our_driver, "real": real_driver}


@contextmanager
def ends(*made):
    try:
        yield made
    finally:
        for each in made:
            each.close()


def receiver_positions(directory):
    """Return rcv-pos of active images and of those just closed."""
    cnc = map_cnc(directory / "cnc.dat")
    count = cnc.counter_count()
    types, values = cnc.metadata["type_id"][:count], cnc.values["value"][:count]
    return values[types == RECEIVER_POSITION].tolist()


def check(writer, reader, reading_directory, is_exclusive):
    messages, position, end = exchange(writer, reader, is_exclusive=is_exclusive)
    assert messages == MESSAGES
    assert position == end
    assert receiver_positions(reading_directory) == [end]


@pytest.mark.parametrize("is_exclusive", [True, False], ids=["exclusive", "concurrent"])
@pytest.mark.parametrize(
    ("driver", "writer", "reader"),
    [
        ("ours", "real", "real"),
        ("ours", "real", "ours"),
        ("ours", "ours", "real"),
        ("real", "ours", "ours"),
        ("real", "ours", "real"),
        ("real", "real", "ours"),
    ],
)
def test_either_client_works_with_either_driver(tmp_path, driver, writer, reader, is_exclusive):
    with (
        DRIVERS[driver](tmp_path) as directory,
        ends(ENDS[writer](directory), ENDS[reader](directory)) as (writing, reading),
    ):
        check(writing, reading, directory, is_exclusive)


@pytest.mark.parametrize("is_exclusive", [True, False], ids=["exclusive", "concurrent"])
@pytest.mark.parametrize(("sending", "receiving"), [("ours", "real"), ("real", "ours")])
def test_either_driver_sends_to_the_other(tmp_path, sending, receiving, is_exclusive):
    with (
        DRIVERS[sending](tmp_path) as near,
        DRIVERS[receiving](tmp_path) as far,
        ends(ENDS[sending](near), ENDS[receiving](far)) as (writing, reading),
    ):
        check(writing, reading, far, is_exclusive)
