"""The log buffers of a client: only those of its driver's directory are mapped."""

import shutil
from pathlib import Path

import pytest

from windtunnel.driver.base.errors import StorageError
from windtunnel.driver.client.conductor.log_buffers import LogBuffers
from windtunnel.driver.logbuffer import descriptor
from windtunnel.driver.logbuffer.log_buffer import LogBuffer
from windtunnel.driver.logbuffer.parameters import LogParameters

LINGER_NS = 1_000
PARAMETERS = LogParameters(
    type=descriptor.IMAGE,
    correlation_id=1,
    session_id=2,
    stream_id=3,
    initial_term_id=0,
    term_length=65536,
    mtu_length=1408,
)


def make_log(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    LogBuffer.create(path, PARAMETERS).close()
    return path


def test_a_log_in_the_drivers_directory_is_mapped_by_any_path_to_it(tmp_path):
    path = make_log(tmp_path / "aeron" / "images" / "1.logbuffer")
    (tmp_path / "other-name").symlink_to(tmp_path / "aeron")
    for directory in (tmp_path / "aeron", tmp_path / "other-name"):
        logs = LogBuffers(directory, LINGER_NS)
        assert logs.acquire(path).term_length == 65536
        logs.close()


@pytest.mark.parametrize("how", ["elsewhere", "parent", "link", "folder"])
def test_a_log_elsewhere_is_refused(tmp_path, how):
    own, other = tmp_path / "aeron" / "images", make_log(tmp_path / "b" / "images" / "1.logbuffer")
    own.mkdir(parents=True)
    path = own / "1.logbuffer"
    if how == "elsewhere":
        path = other
    elif how == "parent":
        path = own.parent / ".." / "b" / "images" / "1.logbuffer"
    elif how == "link":
        path.symlink_to(other)
    else:
        shutil.rmtree(own)
        own.symlink_to(other.parent)
    logs = LogBuffers(tmp_path / "aeron", LINGER_NS)
    with pytest.raises(StorageError, match="expected a log buffer below the driver's directory"):
        logs.acquire(path)
