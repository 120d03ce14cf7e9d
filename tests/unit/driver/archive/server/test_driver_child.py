"""A driver of an archive's own begins only while there is an archive to begin for."""

import os

import pytest

from windtunnel.driver.archive.server.driver_child import DriverChild, DriverChildError


def test_a_driver_whose_archive_is_gone_by_then_does_not_begin(tmp_path, monkeypatch):
    """The kernel tells of a parent's end only whoever had asked before."""
    monkeypatch.setattr(os, "getppid", lambda: 1)
    with pytest.raises(DriverChildError, match="the media driver did not start"):
        DriverChild(tmp_path / "aeron", []).close()
    assert not (tmp_path / "aeron").exists()
