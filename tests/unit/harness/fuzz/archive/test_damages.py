"""Damage to a catalog: each kind changes it, and readers detect it."""

import random

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.base.errors import StorageError
from windtunnel.harness.fuzz.archive.damages import DAMAGES, entries, removed, used_length


@pytest.fixture
def catalog(tmp_path):
    with CatalogWriter.create(tmp_path, CatalogOptions(capacity=32)) as writer:
        for number in range(4):
            writer.add(own.descriptor(number))
    return tmp_path / FILE_NAME


def test_entries_are_found(catalog):
    with Catalog(catalog.parent) as opened:
        offsets = [entry.offset for entry in opened.entries()]
    content = catalog.read_bytes()
    assert [at for at, _ in entries(content)] == offsets
    assert offsets[-1] < used_length(content) <= len(content)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_detected_by_the_reader(damage, catalog):
    content = catalog.read_bytes()
    for seed in range(40):
        made = damage(random.Random(seed), content)
        assert made == damage(random.Random(seed), content)
        assert made != content
        if damage is removed:
            assert made is None
            continue
        catalog.write_bytes(made)
        try:
            with Catalog(catalog.parent) as opened:
                assert opened.damage or len(opened.recording_ids) < 4
        except StorageError:
            continue
