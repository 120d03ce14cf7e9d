"""All settings of an archive, with Aeron's default values, and their validation.

`conclude` reports all invalid settings in one error, each with its name, value and valid range.
Aeron interprets any text other than `true` as false, and ignores an unknown checksum. Here both are
rejected.
Source: archive-protocol 8.1; Aeron 1.53.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from windtunnel.driver.archive.settings.setting import (
    ChecksumName,
    PowerOfTwo,
    TrueOrFalse,
    WordOrClass,
)
from windtunnel.driver.archive.storage.catalog import HEADER_LENGTH as CATALOG_HEADER_LENGTH
from windtunnel.driver.archive.storage.catalog_writer import CAPACITY, CAPACITY_MAX
from windtunnel.driver.archive.storage.mark_file import ERROR_BUFFER_LENGTH_MIN
from windtunnel.driver.archive.storage.segment_file import (
    SEGMENT_LENGTH,
    SEGMENT_LENGTH_MAX,
    SEGMENT_LENGTH_MIN,
)
from windtunnel.driver.base.aeron_directory import default_directory
from windtunnel.driver.base.arith import I32_MAX, I64_MAX
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri
from windtunnel.driver.channel.publication_parameters import (
    MTU_LENGTH_MAX,
    MTU_LENGTH_MIN,
    TERM_LENGTH_MAX,
    TERM_LENGTH_MIN,
)
from windtunnel.driver.settings.kinds import Directory, Duration, Number, Setting, Size
from windtunnel.driver.settings.properties import name_of
from windtunnel.driver.settings.units import KIB, MIB, MS, SECOND

ANY_ID = {"low": -1, "high": I64_MAX}

DEDICATED, SHARED, INVOKER = "DEDICATED", "SHARED", "INVOKER"
_MODES = {mode: mode for mode in (DEDICATED, SHARED, INVOKER)}
BACKOFF, YIELD, SPIN, SLEEP = "backoff", "yield", "spin", "sleep-ns"
_IDLES = {
    "backoff": BACKOFF, "BackoffIdleStrategy": BACKOFF,
    "yield": YIELD, "YieldingIdleStrategy": YIELD,
    "spin": SPIN, "BusySpinIdleStrategy": SPIN, "noop": SPIN, "NoOpIdleStrategy": SPIN,
    "sleep-ns": SLEEP, "SleepingIdleStrategy": SLEEP,
    "sleep-ms": SLEEP, "SleepingMillisIdleStrategy": SLEEP,
}  # fmt: skip
ALLOW_ALL = "ALLOW_ALL"


@dataclass(frozen=True, kw_only=True)
class ArchiveSettings:
    """The settings of an archive. Durations are in nanoseconds and lengths in bytes."""

    aeron_dir: Annotated[Path, Directory("AERON_DIR", "directory of the media driver")] = field(
        default_factory=default_directory
    )
    dir: Annotated[Path, Directory("AERON_ARCHIVE_DIR", "directory of the recordings")] = Path(
        "aeron-archive"
    )
    mark_file_dir: Annotated[
        Path | None,
        Directory(
            "AERON_ARCHIVE_MARK_FILE_DIR",
            "directory of the mark file; default: the directory of the recordings",
        ),
    ] = None
    dir_delete_on_start: Annotated[
        bool,
        TrueOrFalse("AERON_ARCHIVE_DIR_DELETE_ON_START", "delete the archive's files on start"),
    ] = False
    archive_id: Annotated[
        int,
        Number("AERON_ARCHIVE_ID", "archive id; -1: a unique id from the driver", **ANY_ID),
    ] = -1
    control_channel: Annotated[
        str, Setting("AERON_ARCHIVE_CONTROL_CHANNEL", "channel for requests from remote clients")
    ] = ""
    control_channel_enabled: Annotated[
        bool,
        TrueOrFalse("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", "whether remote clients are served"),
    ] = True
    control_stream_id: Annotated[
        int, Number("AERON_ARCHIVE_CONTROL_STREAM_ID", "stream id of requests from remote clients")
    ] = 10
    local_control_channel: Annotated[
        str,
        Setting("AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL", "channel for requests from local clients"),
    ] = "aeron:ipc?term-length=64k"
    local_control_stream_id: Annotated[
        int,
        Number("AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID", "stream id of requests from local clients"),
    ] = 10
    control_term_buffer_sparse: Annotated[
        bool,
        TrueOrFalse(
            "AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", "use sparse term buffers for responses"
        ),
    ] = True
    control_term_buffer_length: Annotated[
        int,
        PowerOfTwo(
            "AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH",
            "term length of response publications", TERM_LENGTH_MIN, TERM_LENGTH_MAX,
        ),
    ] = 64 * KIB  # fmt: skip
    control_mtu_length: Annotated[
        int,
        Size(
            "AERON_ARCHIVE_CONTROL_MTU_LENGTH",
            "MTU of response publications; a multiple of 32", MTU_LENGTH_MIN, MTU_LENGTH_MAX,
        ),
    ] = 1408  # fmt: skip
    control_response_channel: Annotated[
        str,
        Setting(
            "AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL",
            "channel for responses from source archives; default: the host of the control channel",
        ),
    ] = ""
    control_response_stream_id: Annotated[
        int,
        Number(
            "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID",
            "stream id of responses from source archives",
        ),
    ] = 20
    message_timeout_ns: Annotated[
        int, Duration("AERON_ARCHIVE_MESSAGE_TIMEOUT", "timeout of requests to other archives", 1)
    ] = 10 * SECOND
    recording_events_enabled: Annotated[
        bool, TrueOrFalse("AERON_ARCHIVE_RECORDING_EVENTS_ENABLED", "publish recording events")
    ] = False
    recording_events_channel: Annotated[
        str, Setting("AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL", "channel of recording events")
    ] = ""
    recording_events_stream_id: Annotated[
        int, Number("AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID", "stream id of recording events")
    ] = 30
    replication_channel: Annotated[
        str,
        Setting("AERON_ARCHIVE_REPLICATION_CHANNEL", "channel for replays from source archives"),
    ] = ""
    segment_file_length: Annotated[
        int,
        PowerOfTwo(
            "AERON_ARCHIVE_SEGMENT_FILE_LENGTH",
            "length of segment files", SEGMENT_LENGTH_MIN, SEGMENT_LENGTH_MAX,
        ),
    ] = SEGMENT_LENGTH  # fmt: skip
    file_io_max_length: Annotated[
        int,
        PowerOfTwo(
            "AERON_ARCHIVE_FILE_IO_MAX_LENGTH",
            "maximum length of a read or write", 64 * KIB, 1 << 30,
        ),
    ] = MIB  # fmt: skip
    file_sync_level: Annotated[
        int,
        Number(
            "AERON_ARCHIVE_FILE_SYNC_LEVEL", "sync segments: 0 never, 1 data, 2 also metadata", 0, 2
        ),
    ] = 0
    catalog_file_sync_level: Annotated[
        int,
        Number(
            "AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL",
            "sync the catalog: 0 never, 1 data, 2 also metadata",
            0,
            2,
        ),
    ] = 0
    catalog_capacity: Annotated[
        int,
        Size(
            "AERON_ARCHIVE_CATALOG_CAPACITY",
            "minimum capacity of the catalog", CATALOG_HEADER_LENGTH, CAPACITY_MAX,
        ),
    ] = CAPACITY  # fmt: skip
    low_storage_space_threshold: Annotated[
        int,
        Size(
            "AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD",
            "free space at or below which new recordings are refused",
            0,
            I64_MAX,
        ),
    ] = 128 * MIB
    max_concurrent_recordings: Annotated[
        int,
        Number(
            "AERON_ARCHIVE_MAX_CONCURRENT_RECORDINGS",
            "maximum number of concurrent recordings",
            0,
            I32_MAX,
        ),
    ] = 20
    max_concurrent_replays: Annotated[
        int,
        Number(
            "AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS",
            "maximum number of concurrent replays",
            0,
            I32_MAX,
        ),
    ] = 20
    connect_timeout_ns: Annotated[
        int,
        Duration(
            "AERON_ARCHIVE_CONNECT_TIMEOUT", "timeout of sessions, replays, tokens and sending", 1
        ),
    ] = 5 * SECOND
    session_liveness_check_interval_ns: Annotated[
        int, Duration("AERON_ARCHIVE_SESSION_LIVENESS_CHECK_INTERVAL", "interval of pings", 1)
    ] = SECOND
    replay_linger_timeout_ns: Annotated[
        int,
        Duration("AERON_ARCHIVE_REPLAY_LINGER_TIMEOUT", "linger timeout of replay publications"),
    ] = 5 * SECOND
    threading_mode: Annotated[
        str,
        WordOrClass("AERON_ARCHIVE_THREADING_MODE", "how agents are assigned to threads", _MODES),
    ] = DEDICATED
    idle_strategy: Annotated[
        str, WordOrClass("AERON_ARCHIVE_IDLE_STRATEGY", "idle strategy of agents", _IDLES)
    ] = BACKOFF
    recorder_idle_strategy: Annotated[
        str,
        WordOrClass(
            "AERON_ARCHIVE_RECORDER_IDLE_STRATEGY",
            "idle strategy of the recorder; default: that of agents",
            _IDLES,
        ),
    ] = ""
    replayer_idle_strategy: Annotated[
        str,
        WordOrClass(
            "AERON_ARCHIVE_REPLAYER_IDLE_STRATEGY",
            "idle strategy of the replayer; default: that of agents",
            _IDLES,
        ),
    ] = ""
    conductor_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_ARCHIVE_CONDUCTOR_CYCLE_THRESHOLD", "duty cycles longer than this are counted"
        ),
    ] = 100 * MS
    recorder_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_ARCHIVE_RECORDER_CYCLE_THRESHOLD", "duty cycles longer than this are counted"
        ),
    ] = 100 * MS
    replayer_cycle_threshold_ns: Annotated[
        int,
        Duration(
            "AERON_ARCHIVE_REPLAYER_CYCLE_THRESHOLD", "duty cycles longer than this are counted"
        ),
    ] = 100 * MS
    error_buffer_length: Annotated[
        int,
        Size(
            "AERON_ARCHIVE_ERROR_BUFFER_LENGTH",
            "length of the error log in the mark file", ERROR_BUFFER_LENGTH_MIN, 1 << 30,
        ),
    ] = ERROR_BUFFER_LENGTH_MIN  # fmt: skip
    record_checksum: Annotated[
        str, ChecksumName("AERON_ARCHIVE_RECORD_CHECKSUM", "checksum written to frames")
    ] = ""
    replay_checksum: Annotated[
        str, ChecksumName("AERON_ARCHIVE_REPLAY_CHECKSUM", "checksum verified before replay")
    ] = ""
    authenticator_supplier: Annotated[
        str,
        Setting(
            "AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER",
            "authenticator, as `module:function`; default: accept every session",
        ),
    ] = ""
    authorisation_service_supplier: Annotated[
        str,
        Setting(
            "AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER",
            "authorisation of requests: ALLOW_ALL, DENY_ALL or `module:function`",
        ),
    ] = ALLOW_ALL

    def conclude(self) -> "ArchiveSettings":
        """Check every setting and the relations between settings. All errors are reported
        together.
        """
        found = [kind.fault(getattr(self, name)) for name, kind in SETTINGS.items()]
        failures = [fault for fault in found if fault is not None]
        failures += self._broken_channels() + self._broken_relations()
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self

    def _broken_relations(self) -> list[str]:
        failures = []
        if self.control_mtu_length % 32:
            failures.append(
                f"{_name_and_value(self, 'control_mtu_length')}: expected a multiple of 32"
            )
        if self.catalog_file_sync_level < self.file_sync_level:
            failures.append(
                f"{_name_and_value(self, 'catalog_file_sync_level')}: expected at least that of "
                f"segments, {_name_and_value(self, 'file_sync_level')}"
            )
        return failures

    def _broken_channels(self) -> list[str]:
        failures = []
        required = ["local_control_channel", "replication_channel"]
        if self.control_channel_enabled:
            required.append("control_channel")
        elif not self.control_response_channel:
            required.append("control_response_channel")
        if self.recording_events_enabled:
            required.append("recording_events_channel")
        for name in required:
            if not getattr(self, name):
                failures.append(f"{SETTINGS[name].variable} must be set")
        media = {"control_channel": uri.UDP, "local_control_channel": uri.IPC}
        for name in (*required, "control_response_channel"):
            text = getattr(self, name)
            if not text:
                continue
            try:
                found = uri.parse(text).media
            except ConfigurationError as error:
                failures.append(f"{SETTINGS[name].variable}: {error}")
                continue
            if found != media.get(name, found):
                failures.append(
                    f"{_name_and_value(self, name)}: expected a channel of media {media[name]}"
                )
        return failures


def _settings() -> dict[str, Setting]:
    hints = get_type_hints(ArchiveSettings, include_extras=True)
    return {each.name: get_args(hints[each.name])[1] for each in fields(ArchiveSettings)}


SETTINGS = _settings()
"""The kind of each setting, by field name."""


def _name_and_value(settings: ArchiveSettings, name: str) -> str:
    kind = SETTINGS[name]
    return f"{kind.variable} is {kind.write(getattr(settings, name))}"


def from_texts(texts: Mapping[str, str], **overrides: Any) -> ArchiveSettings:
    """Parse and check the settings in a mapping from variable names to strings. `overrides` take
    precedence.

    Raises ConfigurationError with the name of a variable that cannot be parsed.
    """
    values = {
        name: kind.parse(texts[kind.variable])
        for name, kind in SETTINGS.items()
        if name not in overrides and texts.get(kind.variable)
    }
    return ArchiveSettings(**(values | overrides)).conclude()


def describe() -> str:
    """Return a description of all settings, with their defaults and valid values."""
    defaults = ArchiveSettings()
    lines = []
    for name, kind in SETTINGS.items():
        value = getattr(defaults, name)
        default = "not set" if value in ("", None) else kind.write(value)
        lines += [
            name_of(kind.variable),
            f"    {kind.description}",
            f"    default {default}; {kind.bounds()}",
        ]
    return "\n".join(lines) + "\n"
