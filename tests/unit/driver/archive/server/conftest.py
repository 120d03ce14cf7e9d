"""Fixtures: an archive with default settings, or two of them, and clients with sessions."""

import pytest

from tests.unit.driver.archive.server.own_archive import own_archive
from tests.unit.driver.archive.server.own_copy import two_archives


@pytest.fixture
def env(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch) as env:
        yield env


@pytest.fixture
def client(env):
    return env.connect_client()


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Yield (environment, client of the destination, client of the source)."""
    with two_archives(tmp_path, monkeypatch) as archives:
        yield archives
