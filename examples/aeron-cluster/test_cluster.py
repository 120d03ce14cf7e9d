"""Tests a cluster of three members through failures: `pytest examples/aeron-cluster`.

Java reads the variable CLASSPATH. The test sets it to AERON_ALL_JAR, and is skipped without it.
"""

import os
import shutil
import zipfile
from pathlib import Path

import pytest

JAR = os.environ.get("AERON_ALL_JAR", "")
CLUSTER_CLASS = "io/aeron/cluster/ConsensusModule.class"


def why_not() -> str:
    """Return the reason why the programs cannot run, or an empty string."""
    if not JAR:
        return "AERON_ALL_JAR is not set: expected the path of Aeron's aeron-all jar"
    if not Path(JAR).is_file():
        return f"AERON_ALL_JAR is {JAR}: expected the path of a jar, found no such file"
    with zipfile.ZipFile(JAR) as jar:
        if CLUSTER_CLASS not in jar.namelist():
            return f"AERON_ALL_JAR is {JAR}: expected Aeron Cluster in it, found no {CLUSTER_CLASS}"
    return "" if shutil.which("javac") else "Java is not installed: found no javac on the PATH"


if why_not():
    pytest.skip(why_not(), allow_module_level=True)
os.environ["CLASSPATH"] = str(Path(JAR).resolve())


@pytest.mark.windtunnel("aeron-cluster.yaml", allow_commands=True)
def test_all_members_apply_the_same_commands_despite_failures(windtunnel_run):
    assert windtunnel_run.verdict.passed


@pytest.mark.windtunnel("aeron-cluster-archives.yaml", allow_commands=True)
def test_so_they_do_with_archives_of_this_project(windtunnel_run):
    assert windtunnel_run.verdict.passed
