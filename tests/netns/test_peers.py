"""Different drivers on the two hosts of a link, each started by the command of its peer."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.netns.test_real_aeron import SCENARIO
from tests.soundness import assert_sound
from windtunnel.harness.artifact.run.manifest import Manifest
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.subjects import peers
from windtunnel.harness.orchestrate.suite.runner import SuiteResult, run_suite

pytest.importorskip("pyaeron", reason="the real Aeron (pyaeron) is not installed")
pytestmark = [
    pytest.mark.netns,
    pytest.mark.peer,
    pytest.mark.skipif(
        bool(privileges.missing()), reason="no right to make network namespaces: run as root"
    ),
]

# Replaces another driver, and takes the same arguments.
AERONMD = f"""#!/bin/sh
exec {shlex.quote(sys.executable)} -m windtunnel.harness.bench.c_driver "$@"
"""
JAVA = f"""#!/bin/sh
for word in "$@"; do
  case "$word" in -Daeron.dir=*) AERON_DIR="${{word#-Daeron.dir=}}" ;; esac
  last="$word"
done
[ "$last" = io.aeron.driver.MediaDriver ] || exit 1
export AERON_DIR AERON_THREADING_MODE=SHARED
exec {shlex.quote(sys.executable)} -m windtunnel.harness.bench.c_driver
"""


def make_run(folder: Path, publisher: str, subscriber: str) -> tuple[SuiteResult, RunDir]:
    file = folder / "small-loss.yaml"
    file.write_text(SCENARIO.replace("2MiB", "256KiB"))
    out = folder / "runs"
    tested = peers.pair(publisher, subscriber, "netns", out / peers.STORE)
    result = run_suite([file], out=out, tested=tested)
    return result, RunDir(result.runs[0].run_dir)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("pair", [("ours", "pyaeron"), ("pyaeron", "ours")])
def test_ours_and_the_c_driver_interoperate_and_are_reported_separately(tmp_path, pair):
    result, folder = make_run(tmp_path, *pair)
    assert [run.outcome for run in result.runs] == [assert_sound(folder.path).outcome]
    subjects = Manifest.read(folder.manifest).subjects
    assert tuple(subjects[host].peer for host in "ab") == pair
    ours, theirs = (subjects[host].version for host in ("ab" if pair[0] == "ours" else "ba"))
    assert ours.endswith("commit=windtunnel")
    assert theirs[0].isdigit()
    assert "windtunnel" not in theirs
    remark = folder.repro.read_text()
    assert theirs in remark
    assert f"{ours.split()[0]} (Windtunnel " in remark
    assert "commit=windtunnel" not in remark


def test_a_driver_is_started_by_its_path(tmp_path):
    path = program(tmp_path / "my aeronmd", AERONMD)
    result, folder = make_run(tmp_path, f"aeronmd:{path}", "ours")
    assert [run.outcome for run in result.runs] == [assert_sound(folder.path).outcome]
    assert "-m windtunnel.harness.bench.c_driver" not in folder.repro.read_text()
    assert f"'aeronmd:{path}'" in folder.repro.read_text()


def test_java_is_reported_by_properties(tmp_path, monkeypatch):
    program(tmp_path / "home" / "bin" / "java", JAVA)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(peers.JAR_VARIABLE, str(program(tmp_path / "aeron-all.jar", "")))
    result, folder = make_run(tmp_path, "ours", "java")
    assert [run.outcome for run in result.runs] == [assert_sound(folder.path).outcome]
    assert Manifest.read(folder.manifest).subjects["b"].peer == "java"


@pytest.mark.full
def test_a_driver_whose_interpreter_is_missing_is_unsupported(tmp_path):
    path = program(tmp_path / "aeronmd", "#!/no/such/interpreter\n")
    result, folder = make_run(tmp_path, "ours", f"aeronmd:{path}")
    assert [run.outcome for run in result.runs] == ["UNSUPPORTED"], result
    assert "b/driver ended with exit code 127" in result.runs[0].reason
    assert Manifest.read(folder.manifest).complete is False
