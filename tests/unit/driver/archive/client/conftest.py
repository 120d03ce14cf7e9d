"""Fixtures: a scripted archive, and a client that has connected to it."""

import pytest

from tests.unit.driver.archive.client.scripted_archive import ARCHIVE_ID, SESSION_ID, ok, stage
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest, AuthConnectRequest


@pytest.fixture
def on_stage(tmp_path, monkeypatch):
    with stage(tmp_path, monkeypatch) as opened:
        opened.archive.script |= {
            AuthConnectRequest: lambda request: [ok(request, SESSION_ID)],
            ArchiveIdRequest: lambda request: [ok(request, ARCHIVE_ID)],
        }
        yield opened


@pytest.fixture
def errors():
    return []


@pytest.fixture
def client(on_stage, errors):
    made = on_stage.connect(error_handler=errors.append)
    yield made
    made.close()
