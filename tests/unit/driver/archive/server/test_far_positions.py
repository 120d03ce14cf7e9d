"""Positions of a catalog, or in the name of a foreign file, that are far more than the files are.

An operation may take time and memory for the files that exist, but not for those that might.
"""

import contextlib
import resource
from dataclasses import replace

import pytest

from tests.unit.driver.archive.server.own_archive import SEGMENT, Err, Ok, own_archive
from tests.unit.driver.archive.server.test_files import Stored, is_settled, names
from windtunnel.driver.archive.protocol.requests import (
    DeleteDetachedSegmentsRequest,
    DetachSegmentsRequest,
    MigrateSegmentsRequest,
    PurgeSegmentsRequest,
    TruncateRecordingRequest,
)
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter

FAR = 1 << 60
ROOM_BYTES = 1 << 30
"""Memory that a test may add: far less than a list of the files would take."""


@contextlib.contextmanager
def little_memory():
    """Limit the memory of this process, so that a list without end raises MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def stored(tmp_path):
    made = Stored(tmp_path)
    made.add(0, 2 * SEGMENT)
    return made


def set_stop(stored, position):
    with CatalogWriter(stored.directory) as catalog:
        catalog.set_stop_position(0, position)


@pytest.mark.timeout(60)
def test_a_file_far_before_the_recording_is_deleted_with_the_detached_ones(
    stored, tmp_path, monkeypatch
):
    foreign = f"0--{FAR}.rec"
    (stored.directory / foreign).write_bytes(b"x")
    with own_archive(tmp_path, monkeypatch) as env, little_memory():
        client = env.connect_client()
        assert (
            client.request(DetachSegmentsRequest, recording_id=0, new_start_position=SEGMENT)
            == Ok()
        )
        response = client.request(DeleteDetachedSegmentsRequest, recording_id=0)
        assert response == Ok(FAR // SEGMENT + 1)
        assert is_settled(env, client, response)
    assert stored.files() == names(SEGMENT, 2 * SEGMENT)


@pytest.mark.timeout(60)
def test_truncating_a_recording_of_any_length_deletes_its_files(stored, tmp_path, monkeypatch):
    set_stop(stored, FAR)
    with own_archive(tmp_path, monkeypatch) as env, little_memory():
        client = env.connect_client()
        response = client.request(TruncateRecordingRequest, recording_id=0, position=SEGMENT)
        assert response == Ok(FAR // SEGMENT)
        assert is_settled(env, client, response)
    assert stored.files() == names(0)


@pytest.mark.timeout(60)
def test_purging_segments_of_a_recording_of_any_length_deletes_its_files(
    stored, tmp_path, monkeypatch
):
    set_stop(stored, FAR)
    with own_archive(tmp_path, monkeypatch) as env, little_memory():
        client = env.connect_client()
        response = client.request(PurgeSegmentsRequest, recording_id=0, new_start_position=FAR)
        assert response == Ok(FAR // SEGMENT)
        assert is_settled(env, client, response)
    assert stored.files() == []


@pytest.mark.timeout(60)
def test_migrating_a_recording_of_any_length_ends_at_the_first_missing_file(
    stored, tmp_path, monkeypatch
):
    set_stop(stored, FAR)
    with CatalogWriter(stored.directory) as catalog:
        found = catalog.descriptor(0)
        assert found is not None
        after = catalog.add(replace(found, start_position=FAR, stop_position=FAR))
    with own_archive(tmp_path, monkeypatch) as env, little_memory():
        client = env.connect_client()
        response = client.request(
            MigrateSegmentsRequest, src_recording_id=0, dst_recording_id=after
        )
        assert response == Err(0)
        assert "missing src segment file" in response.error_message
    assert stored.files() == names(0, SEGMENT, 2 * SEGMENT)
