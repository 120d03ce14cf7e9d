"""This name resolver with real C drivers: each discovers the other and resolves its name."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.peer.ports import free_port
from tests.unit.driver.media_driver.name_resolution.rig import MS, CounterFile
from windtunnel.driver.base.clock import SystemClock
from windtunnel.driver.cnc.cnc_file import open_existing
from windtunnel.driver.cnc.counters_reader import CountersReader
from windtunnel.driver.media.name_resolver import SystemResolver
from windtunnel.driver.media_driver.context import INVOKER, Context
from windtunnel.driver.media_driver.name_resolution.driver_name_resolver import (
    BOOTSTRAP_NEIGHBOR,
    CACHE_ENTRIES,
    NEIGHBORS,
)
from windtunnel.driver.media_driver.name_resolution.suppliers import make_name_resolver

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = pytest.mark.peer

PATIENCE_S = 60.0
OUR_HOST, REAL_HOST, THIRD_HOST = "127.0.0.5", "127.0.0.6", "127.0.0.7"
FAST = {"self": 100, "neighbor": 200, "bootstrap_neighbor": 300}
"""Milliseconds between a driver's announcements of itself."""

REAL_DRIVER = """
import json, sys
import pyaeron
with pyaeron.MediaDriver(dir=sys.argv[1], threading="shared"):
    print("ready", flush=True)
    client = None
    for line in sys.stdin:
        client = client or pyaeron.Aeron(dir=sys.argv[1])
        keep = client.add_publication(json.loads(line), 1001)
"""


class Real:
    """A real driver in its own process, because it reads the environment."""

    def __init__(self, process, directory):
        self._process = process
        self._directory = directory

    def counters(self, type_id):
        cnc = open_existing(self._directory, writable=False)
        try:
            reader = CountersReader(cnc.counters_metadata, cnc.counters_values)
            return [counter for counter in reader if counter.type_id == type_id]
        finally:
            cnc.close()

    def publish(self, channel):
        self._process.stdin.write(json.dumps(channel) + "\n")
        self._process.stdin.flush()


class Ours:
    """This project's resolver without a driver, on a real socket."""

    def __init__(self, name, host, port, bootstrap):
        self.clock = SystemClock()
        self.errors = []
        self.file = CounterFile(self.clock)
        intervals = {
            f"resolver_{what}_resolution_interval_ns": every_ms * MS
            for what, every_ms in FAST.items()
        }
        context = Context(
            threading_mode=INVOKER, name_resolver="driver", resolver_name=name,
            resolver_interface=f"{host}:{port}", resolver_bootstrap_neighbor=bootstrap,
            resolver_neighbor_timeout_ns=10_000 * MS, **intervals,
        )  # fmt: skip
        self.resolver = make_name_resolver(
            context, SystemResolver(), self.file.manager, self.file.values, self.clock,
            lambda code, text, kind="": self.errors.append(text),
        )  # fmt: skip

    def counters(self, type_id):
        return self.file.by_type(type_id)

    def until(self, condition, what):
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, f"{what}: not within {PATIENCE_S:g} s"
            self.resolver.do_work(self.clock.now_ns())
            time.sleep(0.002)


@contextmanager
def real_driver(folder, name, host, port, bootstrap=""):
    directory = folder / name
    settings = {
        f"AERON_DRIVER_RESOLVER_{what.upper()}_RESOLUTION_INTERVAL": f"{every_ms}ms"
        for what, every_ms in FAST.items()
    } | {
        "AERON_NAME_RESOLVER_SUPPLIER": "driver",
        "AERON_DRIVER_RESOLVER_NAME": name,
        "AERON_DRIVER_RESOLVER_INTERFACE": f"{host}:{port}",
        "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT": "10s",
    }
    if bootstrap:
        settings["AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR"] = bootstrap
    with subprocess.Popen(
        [sys.executable, "-c", REAL_DRIVER, str(directory)],
        env=os.environ | settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline() == "ready\n"
            yield Real(process, directory)
        finally:
            process.stdin.close()
            try:
                process.wait(PATIENCE_S)
            finally:
                process.kill()


def values(side, type_id):
    return [counter.value for counter in side.counters(type_id)]


def shape(side, type_id):
    """Return a counter's type, key and label, without the parts that differ between drivers."""
    return [
        (
            c.key,
            c.registration_id,
            c.owner_id,
            c.reference_id,
            c.label.split("=")[0].split("127")[0],
        )
        for c in side.counters(type_id)
    ]


FULL = pytest.mark.full  # Each takes ten seconds: a neighbor is removed after its timeout.


@pytest.mark.full
@pytest.mark.parametrize(
    "who_asks", [pytest.param("ours", marks=FULL), pytest.param("real", marks=FULL), "both"]
)
def test_each_driver_resolves_the_name_of_the_other(tmp_path, who_asks):
    ports = {host: free_port() for host in (OUR_HOST, REAL_HOST)}
    to_real = f"{REAL_HOST}:{ports[REAL_HOST]}" if who_asks != "real" else ""
    to_ours = f"{OUR_HOST}:{ports[OUR_HOST]}" if who_asks != "ours" else ""
    ours = Ours("OURS", OUR_HOST, ports[OUR_HOST], to_real)
    with real_driver(tmp_path, "REAL", REAL_HOST, ports[REAL_HOST], to_ours) as real:
        for side in (ours, real):
            ours.until(lambda side=side: values(side, NEIGHBORS) == [1], "a neighbor")
            ours.until(lambda side=side: values(side, CACHE_ENTRIES) == [1], "a name")
            ours.until(lambda side=side: set(values(side, BOOTSTRAP_NEIGHBOR)) <= {1}, "a word")
        if who_asks == "both":
            for type_id in (NEIGHBORS, CACHE_ENTRIES, BOOTSTRAP_NEIGHBOR):
                assert shape(ours, type_id) == shape(real, type_id)
        assert ours.resolver.resolve("REAL", "endpoint") == (REAL_HOST, 0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
            stream.bind((OUR_HOST, 0))
            stream.setblocking(False)
            real.publish(f"aeron:udp?endpoint=OURS:{stream.getsockname()[1]}|term-length=64k")
            came = []

            def is_found():
                try:
                    came.append(stream.recv(2048))
                except BlockingIOError:
                    return False
                return True

            ours.until(is_found, "a setup frame for us")
        assert came[0][6:8] == b"\5\0"
    ours.until(lambda: values(ours, NEIGHBORS) == [0], "the end of the neighbor")
    assert ours.errors == []
    ours.resolver.close()


def test_names_are_passed_on_by_this_driver_and_the_real_one(tmp_path):
    """Both real drivers have one neighbor, of this project; each must discover all others."""
    ports = {host: free_port() for host in (OUR_HOST, REAL_HOST, THIRD_HOST)}
    ours = Ours("OURS", OUR_HOST, ports[OUR_HOST], "")
    us = f"{OUR_HOST}:{ports[OUR_HOST]}"
    with (
        real_driver(tmp_path, "ONE", REAL_HOST, ports[REAL_HOST], us) as one,
        real_driver(tmp_path, "TWO", THIRD_HOST, ports[THIRD_HOST], us) as two,
    ):
        fourth = Ours("FOURTH", "127.0.0.8", 0, f"{REAL_HOST}:{ports[REAL_HOST]}")

        def all_have_three_neighbors():
            fourth.resolver.do_work(fourth.clock.now_ns())
            return all(values(side, NEIGHBORS) == [3] for side in (ours, one, two, fourth))

        ours.until(all_have_three_neighbors, "three neighbors each")
        assert fourth.resolver.resolve("TWO", "endpoint") == (THIRD_HOST, 0)
        assert ours.resolver.resolve("FOURTH", "endpoint") == ("127.0.0.8", 0)
        fourth.resolver.close()
    ours.resolver.close()
