"""The settings of each archive, and the archives that can be measured on this machine."""

from pathlib import Path

import pytest

from windtunnel.harness.bench import archive_host
from windtunnel.harness.bench.archive_host import (
    ARCHIVES,
    JAVA_ARCHIVE,
    OUR_ARCHIVE,
    ArchiveHost,
    archive_settings,
    archives,
    java_command,
    mark_is_ready,
    our_environment,
)
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.subjects import peers

FOLDER = Path("/shm/round")
CONTROL = "aeron:udp?endpoint=127.0.0.1:8010"


@pytest.fixture
def jar(tmp_path, monkeypatch):
    """Files that stand for a jar and a Java."""
    file, program = tmp_path / "all.jar", tmp_path / "bin" / "java"
    program.parent.mkdir()
    for each in (file, program):
        each.touch(mode=0o755)
    monkeypatch.setenv("AERON_ALL_JAR", str(file))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return file


def test_both_archives_have_the_same_settings(jar):
    settings = BenchSettings(both_set={"AERON_ARCHIVE_FILE_IO_MAX_LENGTH": "64k"})
    given = archive_settings(settings, FOLDER, CONTROL)
    assert given["aeron.archive.file.io.max.length"] == "64k"
    ours, java = our_environment(given, settings, {"PATH": "/bin"}), java_command(given)
    for name, text in given.items():
        assert ours[name.upper().replace(".", "_")] == text
        assert f"-D{name}={text}" in java
    assert set(ours) == {"PATH", *(name.upper().replace(".", "_") for name in given)}
    assert java[-3:] == ["-cp", str(jar), "io.aeron.archive.ArchivingMediaDriver"]
    assert java[0] == str(jar.parent / "bin" / "java")


@pytest.mark.parametrize(
    ("mode", "archive_mode"),
    [("DEDICATED", "DEDICATED"), ("SHARED", "SHARED"), ("SHARED_NETWORK", "SHARED")],
)
def test_an_archive_has_threads_of_its_own_where_the_driver_has(mode, archive_mode):
    given = archive_settings(BenchSettings(threading_mode=mode), FOLDER, CONTROL)
    assert given["aeron.threading.mode"] == mode
    assert given["aeron.archive.threading.mode"] == archive_mode


def test_directories_cannot_be_set():
    names = ("AERON_DIR", "AERON_ARCHIVE_DIR")
    settings = BenchSettings(
        both_set=dict.fromkeys(names, "/elsewhere"), ours_set=dict.fromkeys(names, "/elsewhere")
    )
    given = archive_settings(settings, FOLDER, CONTROL)
    made = our_environment(given, settings, {"AERON_ARCHIVE_DIR": "/ambient"})
    for found in ((given["aeron.dir"], given["aeron.archive.dir"]), [made[name] for name in names]):
        assert list(found) == ["/shm/round/aeron", "/shm/round/archive"]


def test_only_ours_has_additional_settings():
    settings = BenchSettings(ours_set={"AERON_ARCHIVE_THREADING_MODE": "SHARED"})
    given = archive_settings(settings, FOLDER, CONTROL)
    assert our_environment(given, settings, {})["AERON_ARCHIVE_THREADING_MODE"] == "SHARED"
    assert given["aeron.archive.threading.mode"] == "DEDICATED"


def test_both_archives_are_measured_where_they_are_available(jar):
    assert archives(BenchSettings()) == ([OUR_ARCHIVE, JAVA_ARCHIVE], {})
    assert archives(BenchSettings(drivers=("java",))) == ([JAVA_ARCHIVE], {})
    assert archives(BenchSettings(drivers=("c",))) == ([], {})
    assert archives(BenchSettings(cases=("startup",))) == ([], {})


def test_a_missing_java_is_left_out_with_the_reason(jar, monkeypatch):
    monkeypatch.delenv("AERON_ALL_JAR")
    kept, missing = archives(BenchSettings())
    assert kept == [OUR_ARCHIVE]
    assert "AERON_ALL_JAR is not set" in missing["java"]
    assert archives(BenchSettings(drivers=("ours", "c"))) == ([OUR_ARCHIVE], {})


def test_a_jar_that_does_not_exist_is_an_error(jar):
    jar.unlink()
    with pytest.raises(peers.PeerError, match="expected the path of a jar, found no such file"):
        archives(BenchSettings())
    assert archives(BenchSettings(drivers=("ours", "c"))) == ([OUR_ARCHIVE], {})


def test_a_jar_without_java_is_left_out_with_the_reason(jar, monkeypatch):
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(jar.parent))
    assert "Java is not installed" in peers.java_problem()


@pytest.mark.parametrize(
    ("content", "is_ready"),
    [(None, False), (b"", False), (bytes(12), False), (bytes(8) + b"\1\0\0\0", True)],
    ids=["none", "empty", "no version yet", "version"],
)
def test_an_archive_is_ready_once_its_mark_file_has_a_version(tmp_path, content, is_ready):
    file = tmp_path / "archive-mark.dat"
    if content is not None:
        file.write_bytes(content)
    assert mark_is_ready(file) is is_ready


def test_an_archive_that_ends_at_its_start_is_reported_with_its_last_line(
    jar, tmp_path, monkeypatch
):
    class Ended:
        def __init__(self, *_, **__):
            self.pid = 1

        def poll(self):
            return 1

        def tail(self):
            return "no such class"

        def terminate(self):
            pass

        def wait(self, timeout_s):
            return 1

        def kill(self):
            pass

    monkeypatch.setattr(archive_host, "LocalProcess", Ended)
    folder = tmp_path / "round"
    with (
        pytest.raises(LabError, match="in Java ended with exit code 1: no such class"),
        ArchiveHost(ARCHIVES["java"], BenchSettings(), folder, CONTROL),
    ):
        pass
    assert not (folder / "archive").exists()
