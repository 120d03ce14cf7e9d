"""The name of an archive's Aeron client."""

import re

import pytest

from tests.unit.driver.archive.server.own_archive import settings
from tests.unit.driver.client.invoked_client import run_until, world
from windtunnel.driver.archive.protocol.codes import NULL_VALUE
from windtunnel.driver.archive.server import archive_client
from windtunnel.driver.archive.server.archive import Archive
from windtunnel.driver.base.clock import ManualClock
from windtunnel.driver.client.errors import DriverTimeoutError

HEARTBEAT, ERRORS = 11, 101
LABEL = re.compile(r"client-heartbeat: id=(\d+) name=archive archiveId=(\d+) version=\S+ commit=")


@pytest.mark.parametrize("archive_id", [4242, NULL_VALUE])
def test_the_heartbeat_counter_names_the_archive(tmp_path, monkeypatch, archive_id):
    with world(tmp_path, monkeypatch) as made:
        clock = made.driver.clock
        with Archive(settings(tmp_path, archive_id=archive_id), clock) as archive:

            def step():
                archive.invoke()
                made.both(1)

            def label():
                (heartbeat,) = [each for each in made.driver.counters if each.type_id == HEARTBEAT]
                return LABEL.match(heartbeat.label)

            found = run_until(step, label, 2_000)
            client_id, named = (int(number) for number in found.groups())
            assert named == archive.archive_id
            if archive_id == NULL_VALUE:
                # It is the correlation id that the driver assigned just before the client's id.
                assert 0 <= named == client_id - 1
            else:
                assert named == archive_id
            (errors,) = [each for each in made.driver.counters if each.type_id == ERRORS]
            assert errors.label.endswith(f"archiveId={named}")


def test_an_archive_without_an_id_uses_the_id_of_its_client(tmp_path, monkeypatch):
    with world(tmp_path, monkeypatch) as made:
        client = made.connect()
        unnamed = settings(tmp_path, archive_id=NULL_VALUE)
        with Archive(unnamed, made.driver.clock, client) as archive:
            assert archive.archive_id == client.client_id


def test_an_archive_without_an_id_waits_for_a_driver(tmp_path, monkeypatch):
    clock = ManualClock()
    monkeypatch.setattr("windtunnel.driver.base.system.sleep_ns", clock.advance)
    with pytest.raises(DriverTimeoutError, match="no driver was found"):
        archive_client.connect(settings(tmp_path, archive_id=NULL_VALUE), clock)
