"""xz files are read to their end, with a limit on memory."""

import lzma
import zlib
from contextlib import closing

import pytest

from tests.stand_ins import synthetic_capture as made
from windtunnel.reports.analysis.analyze import analyze
from windtunnel.reports.analysis.reading.xz_reader import XzReader

HEADER_AT = 12
"""Offset of the first block's header, after that of the stream."""
DICTIONARY_AT = HEADER_AT + 4
FOUR_GIB = 40


def with_dictionary(packed: bytes, size_code: int) -> bytes:
    """Return an xz file whose header claims another dictionary size."""
    made = bytearray(packed)
    assert made[HEADER_AT + 2 : HEADER_AT + 4] == b"\x21\x01"
    made[DICTIONARY_AT] = size_code
    end = HEADER_AT + 4 * made[HEADER_AT]
    made[end : end + 4] = zlib.crc32(made[HEADER_AT:end]).to_bytes(4, "little")
    return bytes(made)


def read_all(path, length=7):
    content = b""
    with closing(XzReader(path)) as reader:
        while piece := reader.read(length):
            assert len(piece) <= length
            content += piece
    return content


@pytest.fixture
def file(tmp_path):
    return tmp_path / "file.xz"


@pytest.mark.parametrize("padding", [0, 4, 1 << 17])
def test_several_streams_are_read_with_padding_between_them(file, padding):
    streams = [lzma.compress(each) for each in (b"first", b"", b"second")]
    file.write_bytes(b"".join(each + bytes(padding) for each in streams))
    assert read_all(file) == b"firstsecond"


def test_a_damaged_header_of_a_later_stream_is_an_error(file):
    damaged = bytearray(lzma.compress(b"second"))
    damaged[0] ^= 1
    file.write_bytes(lzma.compress(b"first") + damaged)
    with closing(XzReader(file)) as reader:
        assert reader.read(100) == b"first"
        with pytest.raises(lzma.LZMAError):
            reader.read(100)


def test_a_long_file_is_read_in_pieces(file):
    content = bytes(range(256)) * 4_000
    file.write_bytes(lzma.compress(content, preset=9))
    assert read_all(file, 1 << 16) == content


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_file_that_was_cut_off_is_an_error(file, cut):
    file.write_bytes(lzma.compress(b"first" * 30)[:-cut])
    with pytest.raises(EOFError, match="ends before the end of its xz stream"):
        read_all(file)


def test_a_file_that_claims_four_gib_of_memory_is_refused(file):
    packed = lzma.compress(b"first")
    file.write_bytes(with_dictionary(packed, packed[DICTIONARY_AT]))
    assert read_all(file) == b"first"
    file.write_bytes(with_dictionary(packed, FOUR_GIB))
    with pytest.raises(lzma.LZMAError, match="Memory usage limit exceeded"):
        read_all(file)


def test_an_analysis_of_a_file_that_claims_four_gib_of_memory_is_partial(tmp_path):
    content = made.pcap(made.stream_packets(10))
    file = tmp_path / "made.pcap.xz"
    file.write_bytes(with_dictionary(lzma.compress(content), FOUR_GIB))
    tables = analyze([str(file)])
    assert tables.is_partial
    assert "Memory usage limit exceeded" in tables.problems[0]
