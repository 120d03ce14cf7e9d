"""Validation of a source archive's descriptor."""

import pytest

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.replication.destination import source_fault


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"start_position": -32}, "start position is -32"),
        ({"start_position": 33}, "start position is 33"),
        ({"stop_position": 33}, "stop position is 33"),
        ({"start_position": 64, "stop_position": 32}, "stop position is 32"),
        ({"stop_position": -2}, "stop position is -2"),
        ({"mtu_length": 32}, "MTU is 32"),
        ({"mtu_length": 65_536}, "MTU is 65536"),
        ({"term_buffer_length": 100}, "term buffer length is 100"),
        ({"segment_file_length": -1}, "segment file length is -1"),
        ({"segment_file_length": 32_768}, "segment file length is 32768"),
        ({"original_channel": "aeron:ipc\0"}, "zero bytes"),
        ({"recording_id": -5}, "recording id is -5"),
    ],
)
def test_an_invalid_source_descriptor_is_rejected(changed, part):
    assert part in source_fault(own.descriptor(**changed))


@pytest.mark.parametrize("stop", [-1, 0, 64])
def test_a_valid_source_descriptor_is_accepted(stop):
    assert source_fault(own.descriptor(stop=stop)) == ""
