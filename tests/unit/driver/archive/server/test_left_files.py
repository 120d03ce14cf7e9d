"""Segment files that remain after the end of a recording, because the archive was killed while it
truncated the recording, or because they could not be deleted.
"""

from tests.unit.driver.archive.server.own_archive import SEGMENT, Err, own_archive
from tests.unit.driver.archive.server.test_files import Stored, names
from windtunnel.driver.archive.protocol.codes import ControlResponseCode
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.archive.tool.program import main

STOP = SEGMENT // 2
CHANNEL = "aeron:ipc?term-length=64k|init-term-id=2147483647|term-id=-2147483648|term-offset=0"


def truncated_and_killed(folder):
    """A recording of three files that has been truncated within the first one, but for them."""
    stored = Stored(folder)
    stored.add(0, 3 * SEGMENT)
    (stored.directory / names(3 * SEGMENT)[0]).unlink()
    with CatalogWriter(stored.directory) as catalog:
        catalog.set_stop_position(0, STOP)
    return stored


def test_a_recording_with_later_files_is_not_extended(tmp_path, monkeypatch, capsys):
    """If the archive were killed during the extension, the recording would end in a later file."""
    stored = truncated_and_killed(tmp_path)
    with own_archive(tmp_path, monkeypatch) as env:
        client = env.connect_client()
        response = client.extend(0, CHANNEL)
        assert response == Err(0)
        assert response.error_message == (
            f"cannot extend recording 0: expected no data after its stop position {STOP}, found 2 "
            f"segment files, such as 0-{SEGMENT}.rec; move them away, or delete all orphans with "
            "`windtunnel archive delete-orphans`"
        )
    assert stored.range() == (0, STOP)
    assert stored.files() == names(0, SEGMENT, 2 * SEGMENT)


def test_it_is_extended_after_they_were_deleted(tmp_path, monkeypatch, capsys):
    stored = truncated_and_killed(tmp_path)
    assert main(["delete-orphans", "--yes", "--dir", str(stored.directory)]) == 0
    assert stored.files() == names(0)
    with own_archive(tmp_path, monkeypatch) as env:
        assert env.connect_client().extend(0, CHANNEL).code == ControlResponseCode.OK


def test_it_is_extended_if_they_have_no_data(tmp_path, monkeypatch):
    """As after a replication to an empty recording, which moved its start."""
    stored = truncated_and_killed(tmp_path)
    for name in names(SEGMENT, 2 * SEGMENT):
        (stored.directory / name).write_bytes(bytes(SEGMENT))
    with own_archive(tmp_path, monkeypatch) as env:
        assert env.connect_client().extend(0, CHANNEL).code == ControlResponseCode.OK
