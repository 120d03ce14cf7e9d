"""Fixtures: a scripted archive, and a client that has connected to it."""

import pytest

from tests.unit.driver.archive.client.scripted_archive import (
    ARCHIVE_ID,
    SESSION_ID,
    environment,
    ok,
)
from windtunnel.driver.archive.protocol.requests import ArchiveIdRequest, AuthConnectRequest


@pytest.fixture
def env(tmp_path, monkeypatch):
    with environment(tmp_path, monkeypatch) as opened:
        opened.archive.script |= {
            AuthConnectRequest: lambda request: [ok(request, SESSION_ID)],
            ArchiveIdRequest: lambda request: [ok(request, ARCHIVE_ID)],
        }
        yield opened


@pytest.fixture
def errors():
    return []


@pytest.fixture
def client(env, errors):
    connected = env.connect(error_handler=errors.append)
    yield connected
    connected.close()
