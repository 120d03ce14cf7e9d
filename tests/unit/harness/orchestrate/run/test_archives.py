"""Archives of a run: their arguments and settings are those of our archive."""

from types import SimpleNamespace

import pytest

from windtunnel.driver.archive.settings import archive_settings
from windtunnel.driver.media_driver.context import from_environment
from windtunnel.harness.orchestrate.lab import Unsupported
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.run import archives
from windtunnel.harness.scenario.schema.archive import (
    CONTROL_PORT,
    REPLICATION_PORT,
    RESPONSE_PORT,
    Archive,
)

ARCHIVE = Archive(host="b", segment="256KiB")


def test_the_arguments_start_our_archive_from_the_subjects_fork_server():
    words = archives.command(
        fork_server_client.sys.executable, archive="/r/archive", aeron="/m/aeron"
    )
    assert words[1:] == [
        *("-m", "windtunnel.driver.archive", "run"),
        *("--dir", "/r/archive", "--aeron-dir", "/m/aeron"),
    ]
    assert fork_server_client.can_fork(words, archives.variables(ARCHIVE))
    assert words[2] in fork_server_client.SUBJECT_PROGRAMS


def test_the_settings_are_an_archives(tmp_path):
    settings = archive_settings.from_texts(archives.variables(ARCHIVE), dir=tmp_path)
    assert settings.segment_file_length == 256 << 10
    assert settings.threading_mode == archive_settings.SHARED
    assert settings.idle_strategy == archive_settings.SLEEP
    assert not settings.control_channel_enabled
    assert settings.connect_timeout_ns == settings.message_timeout_ns == 30_000_000_000


def test_a_driver_beside_an_archive_repeats_a_nak_once_per_millisecond():
    variables = archives.driver_variables([ARCHIVE], ARCHIVE.host)
    context = from_environment(variables)
    assert context.nak_unicast_delay_ns * context.nak_unicast_retry_delay_ratio == 1_000_000
    assert archives.driver_variables([ARCHIVE], "elsewhere") == {}


def test_a_small_disk_is_filled_and_not_refused(tmp_path):
    small = Archive(host="b", segment="1MiB", disk="16MiB")
    settings = archive_settings.from_texts(archives.variables(small), dir=tmp_path)
    assert settings.low_storage_space_threshold == 0
    words = archives.command("python", archive="/r/a", aeron="/m/a", disk_bytes=small.disk_bytes)
    assert words[: words.index("--folder")][-2:] == [
        "-m",
        "windtunnel.harness.orchestrate.labs.small_disk",
    ]
    assert words[words.index("--size") + 1] == str(16 << 20)
    plain = archives.command("python", archive="/r/a", aeron="/m/a")
    assert words[-len(plain) :] == plain


@pytest.mark.parametrize("fidelity", ["compose", "sim"])
def test_a_small_disk_is_for_namespaces(fidelity):
    small = SimpleNamespace(archives=(Archive(host="b", segment="1MiB", disk="16MiB"),))
    spec = SimpleNamespace(scenario=small, fidelity=fidelity)
    with pytest.raises(Unsupported, match=f"fidelity {fidelity} cannot provide"):
        archives.require(spec)
    spec.fidelity = "netns"
    archives.require(spec)


def test_an_archive_in_a_replication_is_reachable_from_other_hosts(tmp_path):
    settings = archive_settings.from_texts(archives.variables(ARCHIVE, "10.64.0.3"), dir=tmp_path)
    assert settings.control_channel_enabled
    assert settings.control_channel == f"aeron:udp?endpoint=10.64.0.3:{CONTROL_PORT}"
    assert settings.control_response_channel == f"aeron:udp?endpoint=10.64.0.3:{RESPONSE_PORT}"
    assert settings.replication_channel == f"aeron:udp?endpoint=10.64.0.3:{REPLICATION_PORT}"


def test_an_archive_has_its_own_ready_line():
    assert archives.is_ready_line("archive ready pid=1 id=2 dir=/d aeron-dir=/a")
    assert not archives.is_ready_line("ready")
