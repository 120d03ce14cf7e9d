"""Errors of a kernel cache that this user cannot write to say which setting changes it, and errors
of a limit for the size of files name the limit.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.driver.kernels import cache_error
from windtunnel.driver.kernels.sources import CACHE_VARIABLE

ABSENT = "/proc/absent/kernels"
"""A directory that nobody can create."""


@pytest.mark.parametrize("path", ["/proc/absent", ABSENT, f"{ABSENT}/module-1/x.image"])
def test_errors_of_paths_to_and_in_the_cache_are_its_own(path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, ABSENT)
    text = cache_error.advice(PermissionError(13, "Permission denied", path))
    assert text == (
        f": expected a writable directory for compiled kernels, {ABSENT}; set another one in "
        f"{CACHE_VARIABLE}"
    )


@pytest.mark.parametrize("path", ["/proc/absent2", "/tmp/file", None, 3])
def test_other_errors_are_not(path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, ABSENT)
    assert cache_error.advice(PermissionError(13, "Permission denied", path)) == ""


def without_cache(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, CACHE_VARIABLE: ABSENT},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_tools_of_an_archive_name_the_setting(tmp_path: Path) -> None:
    CatalogWriter.create(tmp_path).close()
    done = without_cache("windtunnel.harness", "archive", "describe", "--dir", tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "windtunnel archive: /proc/absent: No such file or directory: expected a writable "
        f"directory for compiled kernels, {ABSENT}; set another one in {CACHE_VARIABLE}\n"
    )


def test_a_run_and_a_driver_name_the_setting(tmp_path: Path) -> None:
    run = ("run", "loss/reliable-2pct", "--fidelity", "sim", "--out", tmp_path)
    for code, words in ((3, ("windtunnel.harness", *run)), (1, ("windtunnel.driver",))):
        done = without_cache(*words)
        assert done.returncode == code
        assert done.stderr.endswith(f"set another one in {CACHE_VARIABLE}\n"), done.stderr


LIMIT_BYTES = 102_400
LIMITED = (
    ": File too large: expected a higher limit for the size of files, found 102,400 bytes; raise "
    "it with `ulimit -f unlimited`\n"
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("windtunnel.driver", "--dir", "DIR"), 1),
        (("windtunnel.harness", "archive", "describe", "--dir", "DIR"), 2),
        (("windtunnel.harness", "archive", "--help"), 2),
        (("windtunnel.harness", "analyze", "DIR"), 3),
        (("windtunnel.harness", "run", "loss/reliable-2pct", "--fidelity", "sim"), 3),
    ],
)
def test_a_limit_for_the_size_of_files_is_named(tmp_path: Path, words, code) -> None:
    line = error_with_limit(tmp_path, LIMIT_BYTES, words, code)
    assert line.endswith(LIMITED)
    assert "/" in line.removesuffix(LIMITED)


@pytest.mark.parametrize(
    ("words", "code", "file"),
    [
        (("windtunnel.driver", "--dir", "DIR/aeron"), 1, "/cnc.dat"),
        (("windtunnel.driver.warm_up", "--mode", "SHARED"), 1, "/cnc.dat"),
        (
            ("windtunnel.harness", "run", "loss/reliable-2pct", "--fidelity", "sim"),
            3,
            "/.payload/stdlib",
        ),
    ],
)
def test_a_file_that_exceeds_the_limit_is_named(tmp_path: Path, words, code, file) -> None:
    line = error_with_limit(tmp_path, 200 * LIMIT_BYTES, words, code)
    assert line.endswith(LIMITED.replace("102,400", "20,480,000"))
    assert file in line


def error_with_limit(tmp_path: Path, limit_bytes: int, words, code) -> str:
    """Return the last line of a command's errors, in a process with this limit."""
    limits = (limit_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    done = subprocess.run(
        [sys.executable, "-m", *(word.replace("DIR", str(tmp_path)) for word in words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines(keepends=True)[-1]
