"""Both checksums are compared with zlib, a published value and their definition."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import crc32c as naive
from windtunnel.driver.archive.storage import checksum
from windtunnel.driver.base.errors import ConfigurationError


@given(st.binary(max_size=200))
def test_checksums_of_any_bytes_follow_the_definition(content):
    assert checksum.CRC_32.of(content) == naive.crc(0xEDB88320, content)
    assert checksum.CRC_32C.of(content) == naive.crc(0x82F63B78, content)
    assert checksum.CRC_32.of(content) & 0xFFFFFFFF == zlib.crc32(content)


def test_crc_32c_matches_the_examples_of_rfc_3720():
    assert checksum.CRC_32C.of(b"123456789") & 0xFFFFFFFF == 0xE3069283
    assert checksum.CRC_32C.of(bytes(32)) & 0xFFFFFFFF == 0x8A9136AA


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("CRC-32", checksum.CRC_32),
        ("CRC-32C", checksum.CRC_32C),
        ("io.aeron.archive.checksum.Crc32", checksum.CRC_32),
        ("org.agrona.checksum.Crc32c", checksum.CRC_32C),
    ],
)
def test_checksum_names_of_aeron_are_accepted(name, found):
    assert checksum.by_name(name) is found


@pytest.mark.parametrize("name", ["", "crc", "CRC-64", "CRC-32."])
def test_an_unknown_name_is_rejected(name):
    with pytest.raises(ConfigurationError, match="expected CRC-32 or CRC-32C"):
        checksum.by_name(name)
