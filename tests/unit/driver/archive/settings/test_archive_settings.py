"""Settings of an archive: names, defaults, invalid values."""

import pytest

from windtunnel.driver.archive.settings.archive_settings import (
    SETTINGS,
    ArchiveSettings,
    describe,
    from_texts,
)
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.settings.properties import name_of

CONTROL = "AERON_ARCHIVE_CONTROL_CHANNEL"
REPLICATION = "AERON_ARCHIVE_REPLICATION_CHANNEL"
LEAST = {
    CONTROL: "aeron:udp?endpoint=localhost:8010", REPLICATION: "aeron:udp?endpoint=localhost:0",
}  # fmt: skip
DEFAULTS = {
    "aeron.archive.dir": "aeron-archive",
    "aeron.archive.control.stream.id": "10",
    "aeron.archive.local.control.channel": "aeron:ipc?term-length=64k",
    "aeron.archive.local.control.stream.id": "10",
    "aeron.archive.control.term.buffer.length": "64k",
    "aeron.archive.control.mtu.length": "1408",
    "aeron.archive.recording.events.stream.id": "30",
    "aeron.archive.segment.file.length": "128m",
    "aeron.archive.file.io.max.length": "1m",
    "aeron.archive.file.sync.level": "0",
    "aeron.archive.catalog.capacity": "1m",
    "aeron.archive.low.storage.space.threshold": "128m",
    "aeron.archive.max.concurrent.recordings": "20",
    "aeron.archive.max.concurrent.replays": "20",
    "aeron.archive.connect.timeout": "5s",
    "aeron.archive.session.liveness.check.interval": "1s",
    "aeron.archive.replay.linger.timeout": "5s",
    "aeron.archive.threading.mode": "DEDICATED",
    "aeron.archive.error.buffer.length": "1m",
    "aeron.archive.message.timeout": "10s",
}
"""Source: archive-protocol 8.1."""


def test_defaults_are_aerons():
    settings = ArchiveSettings()
    written = {
        name_of(kind.variable): kind.write(getattr(settings, name))
        for name, kind in SETTINGS.items()
    }
    assert {name: written[name] for name in DEFAULTS} == DEFAULTS


def test_a_variable_is_the_propertys_name_in_upper_case():
    assert {kind.variable for kind in SETTINGS.values()} >= {
        "AERON_DIR", "AERON_ARCHIVE_DIR", CONTROL, "AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS",
    }  # fmt: skip


def test_texts_are_parsed_to_values():
    settings = from_texts(
        LEAST
        | {
            "AERON_ARCHIVE_SEGMENT_FILE_LENGTH": "64k", "AERON_ARCHIVE_CONNECT_TIMEOUT": "3s",
            "AERON_ARCHIVE_RECORD_CHECKSUM": "io.aeron.archive.checksum.Crc32c",
            "AERON_ARCHIVE_THREADING_MODE": "shared",
            "AERON_ARCHIVE_IDLE_STRATEGY": "org.agrona.concurrent.YieldingIdleStrategy",
        }
    )  # fmt: skip
    assert settings.segment_file_length == 65_536
    assert settings.connect_timeout_ns == 3_000_000_000
    assert (settings.record_checksum, settings.threading_mode) == ("CRC-32C", "SHARED")
    assert settings.idle_strategy == "yield"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", "100k"),
        ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", "32k"),
        ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", "2g"),
        ("AERON_ARCHIVE_FILE_IO_MAX_LENGTH", "32k"),
        ("AERON_ARCHIVE_CATALOG_CAPACITY", "31"),
        ("AERON_ARCHIVE_CATALOG_CAPACITY", "2g"),
        ("AERON_ARCHIVE_ERROR_BUFFER_LENGTH", "512k"),
        ("AERON_ARCHIVE_FILE_SYNC_LEVEL", "3"),
        ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", "1400"),
        ("AERON_ARCHIVE_CONNECT_TIMEOUT", "soon"),
        ("AERON_ARCHIVE_RECORD_CHECKSUM", "MD5"),
        ("AERON_ARCHIVE_THREADING_MODE", "MANY"),
        ("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", "maybe"),
        (CONTROL, "aeron:ipc"),
        (CONTROL, "rubbish"),
        ("AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL", "aeron:udp?endpoint=localhost:8010"),
        (CONTROL, ""),
        (REPLICATION, ""),
    ],
)
def test_an_invalid_value_is_rejected_with_its_name(variable, text):
    with pytest.raises(ConfigurationError, match=variable):
        from_texts(LEAST | {variable: text})


def test_all_invalid_settings_are_reported_together():
    with pytest.raises(ConfigurationError) as raised:
        from_texts({"AERON_ARCHIVE_FILE_SYNC_LEVEL": "1"})
    for each in (CONTROL, REPLICATION, "AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL is 0"):
        assert each in str(raised.value)


def test_a_setting_required_by_another_must_be_set():
    off = LEAST | {"AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED": "false"}
    with pytest.raises(ConfigurationError, match="CONTROL_RESPONSE_CHANNEL"):
        from_texts(off)
    responses = {"AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL": "aeron:udp?endpoint=localhost:0"}
    assert not from_texts(off | responses).control_channel_enabled
    with pytest.raises(ConfigurationError, match="RECORDING_EVENTS_CHANNEL"):
        from_texts(LEAST | {"AERON_ARCHIVE_RECORDING_EVENTS_ENABLED": "true"})


def test_every_setting_is_described():
    text = describe()
    for kind in SETTINGS.values():
        assert f"\n{name_of(kind.variable)}\n    {kind.description}\n" in "\n" + text
