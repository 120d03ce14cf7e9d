"""Reading a damaged catalog: exactly the undamaged entries are found."""

import random

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.catalog_salvage import salvage
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.base.errors import StorageError

COUNT = 12


@pytest.fixture
def filled(tmp_path):
    """Return (path, entries) of a catalog with entries of many lengths."""
    chance = random.Random(1)
    with CatalogWriter.create(tmp_path) as catalog:
        for _ in range(COUNT):
            text = "aeron:ipc?alias=" + "x" * chance.randrange(400)
            catalog.add(own.descriptor(stop=64, stripped_channel=text, original_channel=text))
    with Catalog(tmp_path) as catalog:
        return tmp_path / FILE_NAME, list(catalog.entries())


def test_all_entries_of_an_undamaged_catalog_are_found(filled):
    path, entries = filled
    found = salvage(path)
    assert list(found.entries.values()) == entries
    assert (found.next_recording_id, found.alignment) == (COUNT, 64)


@pytest.mark.parametrize("seed", range(30))
def test_entries_between_damaged_bytes_are_found(filled, seed):
    path, entries = filled
    chance = random.Random(seed)
    hit = chance.choice(entries)
    at = hit.offset + chance.randrange(hit.end - hit.offset)
    length = min(chance.choice((1, 8, 64, 400)), hit.end - at)
    content = bytearray(path.read_bytes())
    content[at : at + length] = chance.choice((bytes(length), chance.randbytes(length)))
    path.write_bytes(content)
    found = salvage(path).entries
    others = [each for each in entries if each is not hit]
    assert [found[each.recording_id] for each in others] == others
    unknown = found.keys() - {each.recording_id for each in entries}
    assert len(unknown) <= 1


def test_arbitrary_bytes_contain_no_entry(tmp_path):
    path = tmp_path / FILE_NAME
    for content in (
        b"",
        bytes(31),
        bytes(1 << 16),
        b"\xff" * 4096,
        random.Random(1).randbytes(9999),
    ):
        path.write_bytes(content)
        assert salvage(path).entries == {}


def test_an_unreadable_catalog_is_reported(tmp_path):
    with pytest.raises(StorageError, match=r"cannot read .*archive\.catalog: No such file"):
        salvage(tmp_path / FILE_NAME)
