"""A child driver starts only while its archive is running."""

import os

import pytest

from windtunnel.driver.archive.server.driver_child import DriverChild, DriverChildError


def test_a_driver_whose_archive_is_gone_by_then_does_not_begin(tmp_path, monkeypatch):
    """The kernel signals a parent's death only to a process that has requested it before."""
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(DriverChildError, match="the media driver did not start"):
        DriverChild(tmp_path / "aeron", []).close()
    assert not (tmp_path / "aeron").exists()
