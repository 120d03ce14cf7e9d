"""Every setting of an archive, with Aeron's defaults, checked as a whole.

`conclude` reports every failure at once, each with its name, its value and its bounds. Where Aeron
would take any text that is not `true` for false, or pass over a checksum that it does not know,
this refuses. Source: archive-protocol 8.1; Aeron 1.53.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from driver.archive.settings.setting import (
    ChecksumName,
    Choice,
    Directory,
    Duration,
    Flag,
    Number,
    Setting,
    Size,
)
from driver.archive.storage.catalog import HEADER_LENGTH as CATALOG_HEADER_LENGTH
from driver.archive.storage.catalog_writer import CAPACITY, CAPACITY_MAX
from driver.archive.storage.mark_file import ERROR_BUFFER_LENGTH_MIN
from driver.archive.storage.segment_file import (
    SEGMENT_LENGTH,
    SEGMENT_LENGTH_MAX,
    SEGMENT_LENGTH_MIN,
)
from driver.base.aeron_directory import default_directory
from driver.base.arith import I32_MAX, I64_MAX
from driver.base.errors import ConfigurationError
from driver.channel import uri
from driver.channel.publication_parameters import (
    MTU_LENGTH_MAX,
    MTU_LENGTH_MIN,
    TERM_LENGTH_MAX,
    TERM_LENGTH_MIN,
)

KIB, MIB = 1 << 10, 1 << 20
MS, SECOND = 1_000_000, 1_000_000_000
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
    """Durations in nanoseconds and lengths in bytes unless a name says else."""

    aeron_dir: Annotated[Path, Directory("aeron.dir", "where the media driver's files live")] = (
        field(default_factory=default_directory)
    )
    dir: Annotated[Path, Directory("aeron.archive.dir", "where recordings are kept")] = Path(
        "aeron-archive"
    )
    mark_file_dir: Annotated[
        Path | None,
        Directory("aeron.archive.mark.file.dir", "where the mark file is; with the recordings"),
    ] = None
    dir_delete_on_start: Annotated[
        bool, Flag("aeron.archive.dir.delete.on.start", "begin with nothing")
    ] = False
    archive_id: Annotated[
        int, Number("aeron.archive.id", "who this archive is; -1 lets the driver choose", **ANY_ID)
    ] = -1
    control_channel: Annotated[
        str, Setting("aeron.archive.control.channel", "where clients elsewhere send requests")
    ] = ""
    control_channel_enabled: Annotated[
        bool, Flag("aeron.archive.control.channel.enabled", "whether there is such a channel")
    ] = True
    control_stream_id: Annotated[
        int, Number("aeron.archive.control.stream.id", "the stream of that channel")
    ] = 10
    local_control_channel: Annotated[
        str, Setting("aeron.archive.local.control.channel", "where local clients send requests")
    ] = "aeron:ipc?term-length=64k"
    local_control_stream_id: Annotated[
        int, Number("aeron.archive.local.control.stream.id", "the stream of that channel")
    ] = 10
    control_term_buffer_sparse: Annotated[
        bool, Flag("aeron.archive.control.term.buffer.sparse", "of response publications")
    ] = True
    control_term_buffer_length: Annotated[
        int,
        Size(
            "aeron.archive.control.term.buffer.length",
            "of response publications", TERM_LENGTH_MIN, TERM_LENGTH_MAX, True,
        ),
    ] = 64 * KIB  # fmt: skip
    control_mtu_length: Annotated[
        int,
        Size(
            "aeron.archive.control.mtu.length",
            "of response publications; a multiple of 32", MTU_LENGTH_MIN, MTU_LENGTH_MAX,
        ),
    ] = 1408  # fmt: skip
    control_response_channel: Annotated[
        str,
        Setting(
            "aeron.archive.control.response.channel",
            "where other archives answer when this one replicates; the control channel's host",
        ),
    ] = ""
    control_response_stream_id: Annotated[
        int, Number("aeron.archive.control.response.stream.id", "the stream of that channel")
    ] = 20
    message_timeout_ns: Annotated[
        int, Duration("aeron.archive.message.timeout", "how long another archive may be silent")
    ] = 10 * SECOND
    recording_events_enabled: Annotated[
        bool, Flag("aeron.archive.recording.events.enabled", "tell everybody of recordings")
    ] = False
    recording_events_channel: Annotated[
        str, Setting("aeron.archive.recording.events.channel", "where everybody is told")
    ] = ""
    recording_events_stream_id: Annotated[
        int, Number("aeron.archive.recording.events.stream.id", "the stream of that channel")
    ] = 30
    replication_channel: Annotated[
        str, Setting("aeron.archive.replication.channel", "where other archives replay to")
    ] = ""
    segment_file_length: Annotated[
        int,
        Size(
            "aeron.archive.segment.file.length",
            "of the files of a recording", SEGMENT_LENGTH_MIN, SEGMENT_LENGTH_MAX, True,
        ),
    ] = SEGMENT_LENGTH  # fmt: skip
    file_io_max_length: Annotated[
        int,
        Size(
            "aeron.archive.file.io.max.length",
            "most bytes of one read or write", 64 * KIB, 1 << 30, True,
        ),
    ] = MIB  # fmt: skip
    file_sync_level: Annotated[
        int,
        Number("aeron.archive.file.sync.level", "0 none, 1 data, 2 metadata of segments", 0, 2),
    ] = 0
    catalog_file_sync_level: Annotated[
        int,
        Number("aeron.archive.catalog.file.sync.level", "the same of the catalog", 0, 2),
    ] = 0
    catalog_capacity: Annotated[
        int,
        Size(
            "aeron.archive.catalog.capacity",
            "of the catalog at least", CATALOG_HEADER_LENGTH, CAPACITY_MAX,
        ),
    ] = CAPACITY  # fmt: skip
    low_storage_space_threshold: Annotated[
        int,
        Size(
            "aeron.archive.low.storage.space.threshold",
            "no new recording begins with so few usable bytes",
        ),
    ] = 128 * MIB
    max_concurrent_recordings: Annotated[
        int, Number("aeron.archive.max.concurrent.recordings", "at one time", 0, I32_MAX)
    ] = 20
    max_concurrent_replays: Annotated[
        int, Number("aeron.archive.max.concurrent.replays", "at one time", 0, I32_MAX)
    ] = 20
    connect_timeout_ns: Annotated[
        int, Duration("aeron.archive.connect.timeout", "for sessions, replays, tokens and sends")
    ] = 5 * SECOND
    session_liveness_check_interval_ns: Annotated[
        int, Duration("aeron.archive.session.liveness.check.interval", "between pings")
    ] = SECOND
    replay_linger_timeout_ns: Annotated[
        int, Duration("aeron.archive.replay.linger.timeout", "of replay publications", 0)
    ] = 5 * SECOND
    threading_mode: Annotated[
        str,
        Choice("aeron.archive.threading.mode", "which agents have a thread of their own", _MODES),
    ] = DEDICATED
    idle_strategy: Annotated[
        str, Choice("aeron.archive.idle.strategy", "what agents do without work", _IDLES)
    ] = BACKOFF
    recorder_idle_strategy: Annotated[
        str, Choice("aeron.archive.recorder.idle.strategy", "the recorder's own, if any", _IDLES)
    ] = ""
    replayer_idle_strategy: Annotated[
        str, Choice("aeron.archive.replayer.idle.strategy", "the replayer's own, if any", _IDLES)
    ] = ""
    conductor_cycle_threshold_ns: Annotated[
        int, Duration("aeron.archive.conductor.cycle.threshold", "longer turns are counted", 0)
    ] = 100 * MS
    recorder_cycle_threshold_ns: Annotated[
        int, Duration("aeron.archive.recorder.cycle.threshold", "longer turns are counted", 0)
    ] = 100 * MS
    replayer_cycle_threshold_ns: Annotated[
        int, Duration("aeron.archive.replayer.cycle.threshold", "longer turns are counted", 0)
    ] = 100 * MS
    error_buffer_length: Annotated[
        int,
        Size(
            "aeron.archive.error.buffer.length",
            "of the error log in the mark file", ERROR_BUFFER_LENGTH_MIN, 1 << 30,
        ),
    ] = ERROR_BUFFER_LENGTH_MIN  # fmt: skip
    record_checksum: Annotated[
        str, ChecksumName("aeron.archive.record.checksum", "written with every frame")
    ] = ""
    replay_checksum: Annotated[
        str, ChecksumName("aeron.archive.replay.checksum", "looked at before a frame is replayed")
    ] = ""
    authenticator_supplier: Annotated[
        str,
        Setting(
            "aeron.archive.authenticator.supplier",
            "who decides about sessions, as `module:function`; nothing lets everybody in",
        ),
    ] = ""
    authorisation_service_supplier: Annotated[
        str,
        Setting(
            "aeron.archive.authorisation.service.supplier",
            "who decides about requests: ALLOW_ALL, DENY_ALL or `module:function`",
        ),
    ] = ALLOW_ALL

    def conclude(self) -> "ArchiveSettings":
        """Check every setting and their relations; all failures are reported together."""
        found = [kind.fault(getattr(self, name)) for name, kind in SETTINGS.items()]
        failures = [fault for fault in found if fault is not None]
        failures += self._broken_channels() + self._broken_relations()
        if failures:
            raise ConfigurationError("; ".join(failures))
        return self

    def _broken_relations(self) -> list[str]:
        failures = []
        if self.control_mtu_length % 32:
            failures.append(f"{_said(self, 'control_mtu_length')}, not a multiple of 32")
        if self.catalog_file_sync_level < self.file_sync_level:
            failures.append(
                f"{_said(self, 'catalog_file_sync_level')}, but must not be below "
                f"{_said(self, 'file_sync_level')}"
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
                failures.append(f"{_said(self, name)}, but must be of media {media[name]}")
        return failures


def _settings() -> dict[str, Setting]:
    hints = get_type_hints(ArchiveSettings, include_extras=True)
    return {each.name: get_args(hints[each.name])[1] for each in fields(ArchiveSettings)}


SETTINGS = _settings()
"""What is known of each field, by its name."""


def _said(settings: ArchiveSettings, name: str) -> str:
    kind = SETTINGS[name]
    return f"{kind.variable} is {kind.write(getattr(settings, name))}"


def from_texts(texts: Mapping[str, str], **overrides: Any) -> ArchiveSettings:
    """Read the settings that texts give, by variable; `overrides` win. Checked as a whole.

    Raises ConfigurationError naming the variable that cannot be read.
    """
    values = {
        name: kind.parse(texts[kind.variable])
        for name, kind in SETTINGS.items()
        if name not in overrides and texts.get(kind.variable)
    }
    return ArchiveSettings(**(values | overrides)).conclude()


def describe() -> str:
    """A paragraph for each setting there is."""
    defaults = ArchiveSettings()
    lines = []
    for name, kind in SETTINGS.items():
        value = getattr(defaults, name)
        default = "not set" if value in ("", None) else kind.write(value)
        lines += [kind.name, f"    {kind.meaning}", f"    default {default}; {kind.bounds()}"]
    return "\n".join(lines) + "\n"
