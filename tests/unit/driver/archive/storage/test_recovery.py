"""The stop position after a kill: truncated files, torn pages, padding, and Aeron's files."""

import pytest

from tests.golden import archive_files
from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage.catalog import Catalog
from windtunnel.driver.archive.storage.checksum import CRC_32
from windtunnel.driver.archive.storage.recovery import RecoveredStop, recovered_stop
from windtunnel.driver.base.errors import StorageError

PAGE = 4096
LENGTHS = [1000, 200, 1376, 31, 700] * 20


def _ends(frames, start=0):
    """Return every possible stop position of a recording of these frames."""
    return [start] + [position + len(content) for position, content in frames]


def _cut(path, length, *, to_zeros=False):
    """Lose everything after `length`. The file may keep its size."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(length)
        if to_zeros:
            file.truncate(size)


def test_the_stop_position_of_an_undamaged_recording_is_its_end(tmp_path):
    end = own.write(tmp_path, 0, own.stream(LENGTHS * 3))
    assert end > own.SEGMENT
    assert recovered_stop(tmp_path, own.descriptor()) == RecoveredStop(end)


def test_a_recording_without_files_or_data_stops_at_its_start(tmp_path):
    assert recovered_stop(tmp_path, own.descriptor(start=66_560)).position == 66_560
    own.write(tmp_path, 0, [], 66_560)
    assert recovered_stop(tmp_path, own.descriptor(start=66_560)) == RecoveredStop(66_560)


def test_a_recording_that_starts_within_a_term_is_read_from_there(tmp_path):
    frames = own.stream(LENGTHS, 66_560)
    end = own.write(tmp_path, 0, frames, 66_560)
    assert recovered_stop(tmp_path, own.descriptor(start=66_560)) == RecoveredStop(end)


def test_an_empty_file_after_the_data_does_not_change_the_stop_position(tmp_path):
    frames = [each for each in own.stream(LENGTHS * 3) if each[0] < own.SEGMENT]
    own.write(tmp_path, 0, frames)
    (tmp_path / f"0-{own.SEGMENT}.rec").write_bytes(bytes(own.SEGMENT))
    assert recovered_stop(tmp_path, own.descriptor()) == RecoveredStop(own.SEGMENT)


@pytest.mark.parametrize("start", [0, 66_560])
def test_a_file_truncated_anywhere_stops_at_the_last_complete_frame(tmp_path, start):
    frames = own.stream(LENGTHS, start)
    end = own.write(tmp_path, 0, frames, start)
    base = start - start % own.TERM
    path = tmp_path / f"0-{base}.rec"
    ends = _ends(frames, start)
    for cut in range(end, end - end % PAGE - 2 * PAGE, -32):
        _cut(path, cut - base)
        stop = recovered_stop(tmp_path, own.descriptor(start=start))
        whole = max(each for each in ends if each <= cut)
        assert stop.doubtful_position is None
        assert stop.position == whole


@pytest.mark.parametrize("checksum", [None, CRC_32])
def test_a_last_frame_with_a_lost_page_is_reported_as_possibly_torn(tmp_path, checksum):
    frames = own.stream(LENGTHS, checksummed=checksum is not None)
    end = own.write(tmp_path, 0, frames)
    ends, doubted = _ends(frames), 0
    for cut in range(end, end - end % PAGE - 2 * PAGE, -32):
        _cut(tmp_path / "0-0.rec", cut, to_zeros=True)
        stop = recovered_stop(tmp_path, own.descriptor(), checksum)
        begin = max(each for each in ends if each <= cut)
        frame_end = min((each for each in ends if each > cut), default=end)
        later_pages = range(begin - begin % PAGE + PAGE, frame_end, PAGE)
        if begin == cut:
            assert stop == RecoveredStop(cut)
        elif any(page >= cut for page in later_pages):
            assert stop == RecoveredStop(frame_end, doubtful_position=begin)
            doubted += 1
        else:
            assert stop == RecoveredStop(frame_end)
    assert doubted > 10


def test_a_page_of_zeros_within_the_last_frame_is_reported(tmp_path):
    lengths = [1000] * 3 + [1376]
    frames = own.stream(lengths)
    position, content = frames[-1]
    assert position // PAGE != (position + len(content) - 1) // PAGE
    torn = content[: PAGE - position % PAGE].ljust(len(content), b"\0")
    frames[-1] = (position, torn)
    end = own.write(tmp_path, 0, frames)
    stop = recovered_stop(tmp_path, own.descriptor())
    assert stop == RecoveredStop(end, doubtful_position=position)


def test_data_after_a_frame_does_not_prove_it_complete(tmp_path):
    frames = own.stream([1000] * 3)
    position = frames[-1][0] + len(frames[-1][1])
    content = own.frame(position, own.payload(0, 1376))
    frames.append((position, content[: PAGE - position % PAGE].ljust(len(content), b"\0")))
    end = own.write(tmp_path, 0, frames)
    with open(tmp_path / "0-0.rec", "r+b") as file:
        file.seek(end + 4)
        file.write(b"old")
    assert recovered_stop(tmp_path, own.descriptor()).doubtful_position == position


def test_files_before_the_start_position_do_not_change_the_stop_position(tmp_path):
    own.write(tmp_path, 0, own.stream([1000] * 3))
    assert recovered_stop(tmp_path, own.descriptor(start=own.SEGMENT)).position == own.SEGMENT


def test_a_checksum_proves_a_frame_whose_last_page_is_zeros(tmp_path):
    frames = own.stream([1000] * 3)
    position = frames[-1][0] + len(frames[-1][1])
    frames.append((position, own.frame(position, bytes(2000), checksummed=True)))
    end = own.write(tmp_path, 0, frames)
    assert recovered_stop(tmp_path, own.descriptor()).doubtful_position == position
    assert recovered_stop(tmp_path, own.descriptor(), CRC_32) == RecoveredStop(end)


def test_padding_over_several_pages_is_not_reported_as_torn(tmp_path):
    frames = own.stream([1000] * 3)
    position = frames[-1][0] + len(frames[-1][1])
    frames.append((position, own.frame(position, bytes(20_000 - 32), is_pad=True)))
    end = own.write(tmp_path, 0, frames)
    assert recovered_stop(tmp_path, own.descriptor()) == RecoveredStop(end)


def test_a_frame_length_beyond_the_file_ends_the_data(tmp_path):
    frames = own.stream([1000] * 3)
    end = own.write(tmp_path, 0, frames)
    with open(tmp_path / "0-0.rec", "r+b") as file:
        file.seek(end)
        file.write(b"\xff\xff\xff\x7f")
    assert recovered_stop(tmp_path, own.descriptor()) == RecoveredStop(end)


@pytest.mark.parametrize("base", [-65_536, own.TERM << 31, (1 << 63) - own.SEGMENT])
def test_a_base_that_no_stream_has_is_rejected(tmp_path, base):
    (tmp_path / f"0-{base}.rec").write_bytes(bytes(own.SEGMENT))
    text = rf"0-{base}.rec: expected a base position of at least 0 .*, and below {own.TERM << 31},"
    with pytest.raises(StorageError, match=text):
        recovered_stop(tmp_path, own.descriptor())


def test_the_last_base_of_a_stream_is_accepted(tmp_path):
    base = (own.TERM << 31) - own.SEGMENT
    (tmp_path / f"0-{base}.rec").write_bytes(bytes(own.SEGMENT))
    assert recovered_stop(tmp_path, own.descriptor()) == RecoveredStop(base)


def test_the_stop_positions_of_the_real_archive_are_recovered(tmp_path):
    archive_files.unpack(tmp_path)
    with Catalog(tmp_path) as catalog:
        found = {
            each: (recovered_stop(tmp_path, catalog.descriptor(each)).position,
                   catalog.descriptor(each).stop_position)
            for each in catalog.recording_ids
        }  # fmt: skip
    assert found == {0: (268448, 268448), 1: (479104, 479104), 2: (855776, 855776)}
