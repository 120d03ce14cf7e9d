"""The example with Aeron Cluster passes, and a member that applies another command is reported."""

import shutil
import zipfile
from pathlib import Path

import pytest

from tests.archive.archives import JAR, why_no_java
from tests.stand_ins.planted_bugs import run_example

pytestmark = [pytest.mark.netns, pytest.mark.full, pytest.mark.timeout(600)]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "aeron-cluster"
LIMIT_S = 500
CLUSTER_CLASS = "io/aeron/cluster/ConsensusModule.class"


def why_no_cluster() -> str:
    """Return the reason why the example cannot run, or an empty string."""
    if why_no_java():
        return why_no_java()
    with zipfile.ZipFile(JAR) as jar:
        if CLUSTER_CLASS not in jar.namelist():
            return f"AERON_ALL_JAR is {JAR}: it has no Aeron Cluster"
    return "" if shutil.which("javac") else "there is no javac on the PATH"


WHY_NOT = why_no_cluster()
needs_cluster = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "it runs")


def test_a_jar_without_a_cluster_is_named(tmp_path: Path) -> None:
    jar = tmp_path / "empty.jar"
    with zipfile.ZipFile(jar, "w"):
        pass
    done = run_example(EXAMPLE, tmp_path, AERON_ALL_JAR=str(jar))
    assert "1 skipped" in done.stdout
    assert "expected Aeron Cluster in it" in " ".join(done.stdout.split())


@needs_cluster
def test_the_example_passes_its_own_test(tmp_path: Path) -> None:
    done = run_example(EXAMPLE, tmp_path, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


@needs_cluster
def test_a_member_with_another_command_is_reported(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "example"))
    program = folder / "Node.java"
    text = program.read_text()
    applied = "Checksum.next(checksum, wanted);"
    assert text.count(applied) == 1
    program.write_text(
        text.replace(
            applied,
            'Checksum.next(checksum, wanted == 100 && "2".equals(System.getenv("MEMBER")) ? 7 : '
            "wanted);",
        )
    )
    done = run_example(folder, tmp_path / "runs", limit_s=LIMIT_S)
    assert done.returncode == 1, done.stdout
    assert "command 100 has the checksum" in done.stdout
