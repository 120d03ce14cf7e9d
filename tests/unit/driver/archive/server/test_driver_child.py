"""A child driver starts only while its archive is running."""

import os

import pytest

from windtunnel.driver.archive.server.driver_child import DriverChild, DriverChildError


def test_a_driver_whose_archive_has_ended_does_not_start(tmp_path, monkeypatch):
    """The kernel reports a parent's death only to a process that requested it beforehand."""
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(DriverChildError, match="the media driver did not start"):
        DriverChild(tmp_path / "aeron", []).close()
    assert not (tmp_path / "aeron").exists()
