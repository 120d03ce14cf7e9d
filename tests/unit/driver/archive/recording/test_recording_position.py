"""The key and label of a recording's counter are compared with the definition of the format."""

import struct

from tests.unit.driver.archive.storage import own_recording as own
from windtunnel.driver.archive.recording import recording_position


def test_the_archive_id_follows_the_source_identity_without_padding():
    recording = own.descriptor(recording_id=3, source_identity="127.0.0.1:41791")
    assert recording_position.key(recording, 77) == (
        struct.pack("<qii", 3, own.SESSION_ID, 15) + b"127.0.0.1:41791" + struct.pack("<q", 77)
    )


def test_a_long_source_identity_is_truncated_to_fit_the_key():
    key = recording_position.key(own.descriptor(source_identity="i" * 200), 77)
    assert len(key) == 112
    assert struct.unpack_from("<i", key, 12) == (88,)
    assert struct.unpack_from("<q", key, 104) == (77,)


def test_the_label_has_aerons_format_and_truncates_a_long_channel():
    recording = own.descriptor(recording_id=3)
    expected = f"rec-pos: 3 {own.SESSION_ID} {own.STREAM_ID} aeron:ipc - archiveId=77"
    assert recording_position.label(recording, 77) == expected
    long = recording_position.label(own.descriptor(stripped_channel="c" * 999), 77)
    assert len(long) == 380
    assert long.endswith("c - archiveId=77")


def test_non_ascii_characters_are_written_as_java_does():
    label = recording_position.label(own.descriptor(stripped_channel="\u00e9" * 999), 77)
    assert len(label.encode()) == 380
    assert label.endswith("? - archiveId=77")
