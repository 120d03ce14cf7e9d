"""Without Java, or with an old version, the Spark engine fails with a clear error message."""

import os

import pytest

from windtunnel.reports.analysis.engines.spark.spark_engine import (
    EngineError,
    check_java,
    first_line,
)


def java(folder, version):
    """Create a folder like a Java installation, whose program does nothing."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return program


def test_reports_that_java_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EngineError, match=r"Java 17 or newer, and none was found \(on the PATH\)"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(EngineError, match=r"JAVA_HOME=.*gone"):
        check_java()


@pytest.mark.parametrize(("version", "release"), [("1.8.0_402", 8), ("11.0.2", 11)])
def test_refuses_an_old_java(version, release, monkeypatch, tmp_path):
    java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EngineError, match=f"is Java {release}"):
        check_java()


def test_finds_java_by_home_or_path(monkeypatch, tmp_path):
    program = java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java() == str(program)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}/nowhere")
    assert check_java() == str(program)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Master must start with yarn\n\nJVM stacktrace:\n  at x", "Master must start with yarn"),
        (
            "An error occurred while calling o1.x.\n: java.lang.X: no host\n\tat y\n",
            "java.lang.X: no host",
        ),
        ("", "RuntimeError"),
    ],
)
def test_an_error_of_spark_is_shortened_to_its_first_line(text, line):
    assert first_line(RuntimeError(text)) == line
