"""An archive as its settings are by default, and a client that has a session with it."""

import pytest

from tests.unit.driver.archive.running.own_archive import own_archive


@pytest.fixture
def own(tmp_path, monkeypatch):
    with own_archive(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def talker(own):
    return own.talk()
