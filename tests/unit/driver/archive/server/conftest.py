"""Fixtures: an archive with default settings, or two of them, and clients with sessions."""

import pytest

from tests.unit.driver.archive.server.own_archive import own_archive
from tests.unit.driver.archive.server.own_copy import two_archives


@pytest.fixture
def own(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def talker(own):
    return own.talk()


@pytest.fixture
def two(tmp_path, monkeypatch):
    """(own, a client of the destination, a client of the source)."""
    with two_archives(tmp_path, monkeypatch) as made:
        yield made
