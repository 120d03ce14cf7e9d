"""The catalog: Aeron's and this project's files, interrupted writes, and damage."""

import os
import random
import struct
from dataclasses import replace

import pytest

from tests.golden import archive_files
from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.storage import catalog_writer
from windtunnel.driver.archive.storage.catalog import FILE_NAME, Catalog, CatalogError
from windtunnel.driver.archive.storage.catalog_entry import RecordingState
from windtunnel.driver.archive.storage.catalog_writer import CatalogOptions, CatalogWriter
from windtunnel.driver.archive.storage.checksum import CRC_32, CRC_32C
from windtunnel.driver.archive.storage.sync import SyncLevel
from windtunnel.driver.base.errors import StorageError


class Killed(BaseException):
    """Simulates the end of the process."""


def _file(folder):
    return folder / FILE_NAME


def _patch(folder, at, content):
    with open(_file(folder), "r+b") as file:
        file.seek(at)
        file.write(content)


def _descriptors(folder):
    with Catalog(folder) as catalog:
        return {each: catalog.descriptor(each) for each in catalog.recording_ids}


def _filled(folder, count=3, **options):
    with CatalogWriter.create(folder, CatalogOptions(**options)) as catalog:
        for index in range(count):
            catalog.add(own.descriptor(stop=0, original_channel="c" * index))
        return [entry.offset for entry in catalog.entries()]


def test_a_catalog_of_aeron_is_read_as_aeron_reads_it(tmp_path):
    archive_files.unpack(tmp_path)
    with Catalog(tmp_path) as catalog:
        assert (catalog.capacity, catalog.next_recording_id, catalog.alignment) == (1 << 20, 3, 64)
        assert catalog.recording_ids == (0, 1, 2)
        assert [entry.offset for entry in catalog.entries()] == [32, 288, 544]
        found = catalog.descriptor(2)
    assert (found.start_position, found.stop_position, found.stream_id) == (262144, 855776, 2003)
    assert found.source_identity == "aeron:ipc"


def test_writing_the_entries_of_a_catalog_of_aeron_gives_its_bytes(tmp_path):
    real, ours = tmp_path / "real", tmp_path / "ours"
    real.mkdir()
    ours.mkdir()
    archive_files.unpack(real)
    with CatalogWriter.create(ours) as catalog:
        for descriptor in _descriptors(real).values():
            new = replace(
                descriptor, control_session_id=0, correlation_id=0, stop_position=-1,
                stop_timestamp=-1,
            )  # fmt: skip
            recording_id = catalog.add(new)
            if descriptor.control_session_id:
                catalog.record_extension(
                    recording_id, control_session_id=descriptor.control_session_id,
                    correlation_id=descriptor.correlation_id, session_id=descriptor.session_id,
                )  # fmt: skip
            catalog.record_stop(recording_id, descriptor.stop_position, descriptor.stop_timestamp)
    assert _file(ours).read_bytes() == _file(real).read_bytes()


def test_an_entry_is_padded_to_the_alignment_of_the_catalog(tmp_path):
    with CatalogWriter.create(tmp_path) as catalog:
        texts = dict.fromkeys(("stripped_channel", "original_channel", "source_identity"), "9" * 9)
        catalog.add(own.descriptor(**texts))
        (entry,) = catalog.entries()
        assert (entry.offset, entry.length, entry.state) == (32, 160, RecordingState.VALID)


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("checksum", [None, CRC_32, CRC_32C])
def test_random_changes_have_the_same_result_as_with_a_dictionary(tmp_path, checksum):
    chance = random.Random(7)
    options = CatalogOptions(capacity=4096, checksum=checksum, sync_level=SyncLevel.DATA)
    expected, invalid = {}, {}
    catalog = CatalogWriter.create(tmp_path, options)
    for _ in range(600):
        known = list(expected)
        action = chance.randrange(9) if known else 0
        picked = chance.choice(known) if known else -1
        if action <= 2:
            text = "c" * chance.randrange(300)
            added = own.descriptor(stripped_channel=text, original_channel=text)
            picked = catalog.add(added)
            expected[picked] = replace(added, recording_id=picked)
        elif action == 3:
            catalog.record_stop(picked, 64, 5)
            expected[picked] = replace(expected[picked], stop_position=64, stop_timestamp=5)
        elif action == 4:
            catalog.record_extension(picked, control_session_id=1, correlation_id=2, session_id=3)
            expected[picked] = replace(
                expected[picked], control_session_id=1, correlation_id=2, session_id=3,
                stop_position=-1, stop_timestamp=-1,
            )  # fmt: skip
        elif action == 5:
            catalog.set_start_position(picked, 32)
            catalog.set_stop_position(picked, 96)
            expected[picked] = replace(expected[picked], start_position=32, stop_position=96)
        elif action == 6:
            text = "r" * chance.randrange(600)
            expected[picked] = replace(expected[picked], original_channel=text)
            catalog.replace(expected[picked])
        elif action == 7:
            state = chance.choice((RecordingState.INVALID, RecordingState.DELETED))
            catalog.set_state(picked, state)
            invalid[picked] = expected.pop(picked)
        else:
            catalog.close()
            catalog = CatalogWriter(tmp_path, options)
    catalog.close()
    assert _descriptors(tmp_path) == expected
    with Catalog(tmp_path) as reader:
        entries = list(reader.entries())
        assert {e.recording_id: e.descriptor for e in entries if not e.is_valid} == invalid
        assert reader.next_recording_id == len(entries) == len(expected) + len(invalid)
        if checksum is not None:
            assert all(entry.is_checksum_right(checksum) for entry in entries)
    assert len(expected) > 50
    assert len(invalid) > 20


def test_a_catalog_grows_by_half_and_keeps_all_ids(tmp_path):
    capacities = set()
    with CatalogWriter.create(tmp_path, CatalogOptions(capacity=1024)) as catalog:
        for index in range(100):
            assert catalog.add(own.descriptor()) == index
            capacities.add(_file(tmp_path).stat().st_size)
    assert sorted(capacities)[:4] == [1024, 1536, 2304, 3456]
    assert tuple(_descriptors(tmp_path)) == tuple(range(100))


def test_a_catalog_of_exact_size_accepts_entries(tmp_path):
    offsets = _filled(tmp_path)
    with Catalog(tmp_path) as catalog:
        exact = [catalog._behind(entry) for entry in catalog.entries()][-1]
    os.truncate(_file(tmp_path), exact)
    with CatalogWriter(tmp_path, CatalogOptions(capacity=0)) as catalog:
        assert catalog.add(own.descriptor()) == 3
        assert [entry.offset for entry in catalog.entries()] == [*offsets, exact]


def test_ids_of_removed_recordings_are_not_reused(tmp_path):
    _filled(tmp_path)
    with CatalogWriter(tmp_path) as catalog:
        catalog.set_state(2, RecordingState.DELETED)
        assert catalog.descriptor(2) is None
        assert catalog.entry(2).state_name == "DELETED"
    with CatalogWriter(tmp_path) as catalog:
        assert catalog.add(own.descriptor()) == 3
        assert catalog.recording_ids == (0, 1, 3)


def test_removing_a_recording_reads_no_other_entry(tmp_path, monkeypatch):
    offsets = _filled(tmp_path, count=50)
    read, real = set(), os.pread
    with CatalogWriter(tmp_path) as catalog:

        def pread(file, length, at):
            read.add(max(each for each in offsets if each <= at))
            return real(file, length, at)

        with monkeypatch.context() as patched:
            patched.setattr(os, "pread", pread)
            catalog.set_state(7, RecordingState.DELETED)
            catalog.set_state(30, RecordingState.INVALID)
        assert read == {offsets[7], offsets[30]}
        left = [each for each in range(50) if each not in (7, 30)]
        assert list(catalog.recording_ids) == left
        assert (catalog.descriptor(7), catalog.descriptor(30)) == (None, None)
        assert catalog.add(own.descriptor()) == 50
    assert list(_descriptors(tmp_path)) == [*left, 50]


def test_a_recording_made_valid_again_returns_to_its_place(tmp_path):
    _filled(tmp_path)
    with CatalogWriter(tmp_path) as catalog:
        for state in (RecordingState.INVALID, RecordingState.INVALID, RecordingState.VALID):
            catalog.set_state(1, state)
            assert (catalog.descriptor(1) is not None) == (state == RecordingState.VALID)
        assert catalog.recording_ids == (0, 1, 2)
    assert tuple(_descriptors(tmp_path)) == (0, 1, 2)


def _work_until_killed(catalog, done):
    """Add, stop and rename recordings, and count the calls that returned."""
    while True:
        recording_id = catalog.add(own.descriptor())
        done["added"] += 1
        catalog.record_stop(recording_id, 64, 5)
        done["stopped"] += 1
        catalog.replace(replace(own.descriptor(recording_id, stop=64), original_channel="n"))


def test_after_a_kill_between_any_two_writes_the_catalog_opens(tmp_path, monkeypatch):
    """Earlier entries are complete; the interrupted one is complete or absent."""
    write_all = catalog_writer.write_all
    for survived in range(40):
        folder = tmp_path / str(survived)
        folder.mkdir()
        left = [survived]

        def write_until_killed(*arguments, left=left):
            if not left[0]:
                raise Killed
            left[0] -= 1
            write_all(*arguments)

        catalog = CatalogWriter.create(folder, CatalogOptions(checksum=CRC_32))
        monkeypatch.setattr(catalog_writer, "write_all", write_until_killed)
        done = {"added": 0, "stopped": 0}
        with pytest.raises(Killed):
            _work_until_killed(catalog, done)
        monkeypatch.setattr(catalog_writer, "write_all", write_all)
        with CatalogWriter(folder, CatalogOptions(checksum=CRC_32)) as again:
            found = len(again.recording_ids)
            assert found in (done["added"], done["added"] + 1)
            assert all(entry.is_checksum_right(CRC_32) for entry in again.entries())
            assert all(
                again.descriptor(each).stop_position == 64 for each in range(done["stopped"])
            )
            assert again.add(own.descriptor()) == found


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("to_zeros", [False, True])
def test_entries_before_a_truncation_are_read_unchanged(tmp_path, to_zeros):
    """At every 32 bytes of its last two pages; entries before the cut are unchanged."""
    _filled(tmp_path, 60, checksum=CRC_32)
    whole = _file(tmp_path).read_bytes()
    expected = _descriptors(tmp_path)
    with Catalog(tmp_path) as catalog:
        ends = [entry.end for entry in catalog.entries()]
    for cut in range(ends[-1], ends[-1] - ends[-1] % 4096 - 8192, -32):
        content = whole[:cut]
        _file(tmp_path).write_bytes(content.ljust(len(whole), b"\0") if to_zeros else content)
        before = sum(end <= cut for end in ends)
        with Catalog(tmp_path) as catalog:
            found = {each: catalog.descriptor(each) for each in catalog.recording_ids}
            assert {each: found[each] for each in range(before)} == {
                each: expected[each] for each in range(before)
            }
            # Texts of an entry that lost bytes may read as shorter ones; the checksum detects it.
            changed = [each for each in found if found[each] != expected[each]]
            assert not any(catalog.entry(each).is_checksum_right(CRC_32) for each in changed)
            assert len(changed) <= 1
            damage = catalog.damage
        if damage:
            with pytest.raises(CatalogError, match=r"archive\.catalog: .*entry.* at \d+"):
                CatalogWriter(tmp_path)


@pytest.mark.parametrize("length", [-1, 91, 1 << 20, 0x7FFFFFFF])
def test_an_invalid_length_hides_only_the_entries_after_it(tmp_path, length):
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[1], struct.pack("<i", length))
    assert list(_descriptors(tmp_path)) == [0]
    text = f"entry at {offsets[1]} has length {length}" if length > 0 else f"zeros at {offsets[1]}"
    with pytest.raises(CatalogError, match=text):
        CatalogWriter(tmp_path)


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("next_id", [3, 0])
def test_a_length_of_zero_is_damage(tmp_path, index, next_id):
    """It hides the entries after it, and the next recording would reuse an id."""
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[index], bytes(4))
    _patch(tmp_path, 8, struct.pack("<q", next_id))
    with Catalog(tmp_path) as catalog:
        assert f"expected an entry or zeros at {offsets[index]}" in catalog.damage
    with pytest.raises(CatalogError, match=f"expected an entry or zeros at {offsets[index]}"):
        CatalogWriter(tmp_path)


def test_a_length_that_overlaps_the_next_entry_is_damage(tmp_path):
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[1], struct.pack("<i", 480))
    with pytest.raises(CatalogError, match=f"entry at {offsets[1]} has length 480 and overlaps"):
        CatalogWriter(tmp_path)


@pytest.mark.parametrize("index", [0, 1])
def test_a_header_of_zeros_before_other_entries_is_damage(tmp_path, index):
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[index], bytes(32))
    for next_id in (3, 0):
        _patch(tmp_path, 8, struct.pack("<q", next_id))
        with pytest.raises(CatalogError, match="expected an entry or zeros"):
            CatalogWriter(tmp_path)


def test_bytes_far_after_the_last_entry_are_damage(tmp_path):
    _filled(tmp_path)
    with CatalogWriter(tmp_path) as catalog:
        catalog.reserve(3 << 20)
    for at in (700_000, (3 << 20) - 1):
        _patch(tmp_path, at, b"\1")
        with pytest.raises(CatalogError, match=f"found other bytes from {at} to {at + 1}"):
            CatalogWriter(tmp_path)
        _patch(tmp_path, at, b"\0")
    CatalogWriter(tmp_path).close()


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_compacted_catalog_keeps_its_next_id(tmp_path, kept):
    """Aeron's `compact` removes entries, also the last ones, and truncates the file."""
    offsets = _filled(tmp_path)
    os.truncate(_file(tmp_path), [*offsets, 0][kept])
    with Catalog(tmp_path) as catalog:
        assert catalog.damage == ""
    for expected in (3, 4):
        with CatalogWriter(tmp_path) as catalog:
            assert catalog.add(own.descriptor()) == expected


def test_after_a_kill_within_a_descriptor_the_catalog_opens(tmp_path):
    """Aeron writes a descriptor field by field into mapped memory, and its header last."""
    _filled(tmp_path)
    with CatalogWriter(tmp_path) as catalog:
        end = catalog._end
        catalog.add(own.descriptor(stripped_channel="s" * 300, original_channel="o" * 200))
    whole = _file(tmp_path).read_bytes()
    content = whole[end + 32 : end + 32 + 700].rstrip(b"\0")
    for length in (*range(17, 128), *range(128, len(content) + 1, 7)):
        left = bytes(end - 8) + bytes(8) + bytes(32) + content[:length]
        left = whole[:8] + struct.pack("<q", 3) + whole[16:end] + left[end:]
        _file(tmp_path).write_bytes(left.ljust(len(whole), b"\0"))
        with Catalog(tmp_path) as catalog:
            assert catalog.damage == ""
        with CatalogWriter(tmp_path) as catalog:
            assert catalog.add(own.descriptor()) == 3
        # No bytes of the longer entry are left after the shorter one.
        with CatalogWriter(tmp_path) as catalog:
            assert catalog.recording_ids == (0, 1, 2, 3)


def test_the_catalog_may_be_read_while_recordings_are_added(tmp_path, monkeypatch):
    _filled(tmp_path)
    writer = CatalogWriter(tmp_path)
    real, added = Catalog._index, []

    def index_and_let_grow(self):
        real(self)
        if self is not writer and len(added) < 2:
            added.extend(writer.add(own.descriptor()) for _ in range(2))

    monkeypatch.setattr(Catalog, "_index", index_and_let_grow)
    with Catalog(tmp_path) as catalog:
        assert catalog.damage == ""
        assert catalog.recording_ids == (0, 1, 2, 3, 4)
    writer.close()


@pytest.mark.parametrize(
    ("place", "content", "fault"),
    [
        (4, struct.pack("<i", 9), "state is 9"),
        (92, struct.pack("<i", 65_537), "segment file length is 65537"),
        (92, struct.pack("<i", 1 << 31 - 1 & 31), "segment file length"),
        (96, struct.pack("<i", 0), "term buffer length is 0"),
        (96, struct.pack("<i", 1 << 20), "less than term buffer length"),
        (112, struct.pack("<I", 0xFFFFFFFF), "stripped_channel"),
        (116, b"\0", "contains zero bytes"),
    ],
)
def test_a_damaged_entry_is_skipped_and_the_others_are_read(tmp_path, place, content, fault):
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[1] + place, content)
    with CatalogWriter(tmp_path) as catalog:
        assert catalog.recording_ids == (0, 2)
        assert fault in list(catalog.entries())[1].fault
        assert catalog.add(own.descriptor()) == 3


def test_ids_that_are_not_ascending_are_damage(tmp_path):
    offsets = _filled(tmp_path)
    _patch(tmp_path, offsets[1] + 48, struct.pack("<q", 0))
    assert list(_descriptors(tmp_path)) == [0, 2]
    with pytest.raises(CatalogError, match="is recording 0, but recording 0 precedes it"):
        CatalogWriter(tmp_path)


@pytest.mark.parametrize(
    ("at", "content", "text"),
    [
        (0, struct.pack("<i", 2 << 16), "expected storage version 3.x, found 2.0.0"),
        (16, struct.pack("<i", 0), "expected an alignment of 64, found 0"),
        (16, struct.pack("<i", 96), "expected an alignment of 64, found 96"),
    ],
)
def test_a_catalog_of_another_format_is_rejected(tmp_path, at, content, text):
    _filled(tmp_path)
    _patch(tmp_path, at, content)
    with pytest.raises(CatalogError, match=text):
        Catalog(tmp_path)


def test_a_next_id_in_use_is_rejected_and_zero_means_the_one_after_the_last(tmp_path):
    _filled(tmp_path)
    _patch(tmp_path, 8, struct.pack("<q", 1))
    with Catalog(tmp_path) as catalog:
        assert "next recording id is 1" in catalog.damage
    with pytest.raises(CatalogError, match="next recording id is 1, but recording 2 exists"):
        CatalogWriter(tmp_path)
    _patch(tmp_path, 8, struct.pack("<q", 0))
    with CatalogWriter(tmp_path) as catalog:
        assert catalog.next_recording_id == 3


def test_without_a_checksum_setting_a_checksum_that_no_longer_matches_is_cleared(tmp_path):
    _filled(tmp_path, checksum=CRC_32)
    with CatalogWriter(tmp_path) as catalog:
        catalog.set_state(0, RecordingState.INVALID)
        assert catalog.entry(0).is_checksum_right(CRC_32)
        catalog.record_stop(1, 64, 5)
        assert catalog.entry(1).checksum == 0


def test_a_full_disk_is_reported_and_no_entry_is_added(tmp_path, monkeypatch):
    catalog = CatalogWriter.create(tmp_path)

    def full(file, content, at):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match=r"catalog at offset \d+: No space left on device"):
        catalog.add(own.descriptor())
    monkeypatch.undo()
    assert catalog.recording_ids == ()
    assert catalog.add(own.descriptor()) == 0
    catalog.close()


def test_missing_or_short_files_are_reported(tmp_path):
    with pytest.raises(StorageError, match=r"cannot open .*archive\.catalog: No such file"):
        Catalog(tmp_path)
    _file(tmp_path).write_bytes(bytes(31))
    with pytest.raises(CatalogError, match="expected at least 32 bytes, found 31"):
        Catalog(tmp_path)
    with pytest.raises(StorageError, match=r"cannot create .*archive\.catalog: File exists"):
        CatalogWriter.create(tmp_path)


def test_a_new_catalog_is_not_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    (tmp_path / catalog_writer.REPLACEMENT_NAME).symlink_to(outside)
    CatalogWriter.create(tmp_path).close()
    assert outside.read_bytes() == b"secret"
    assert _file(tmp_path).is_file()
    assert not _file(tmp_path).is_symlink()


def test_a_catalog_gets_its_name_only_when_complete(tmp_path, monkeypatch):
    """An earlier version, killed during creation, left an empty file that could not be opened."""

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            CatalogWriter.create(tmp_path)
    assert not _file(tmp_path).exists()
    CatalogWriter.create(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [_file(tmp_path).name]
