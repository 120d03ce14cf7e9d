"""An archive as its settings are by default, or two of them, and who has sessions with them."""

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
    """(own, who talks to the destination, who talks to the source)."""
    with two_archives(tmp_path, monkeypatch) as made:
        yield made
