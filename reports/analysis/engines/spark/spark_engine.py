"""Checks the prerequisites of Spark, and starts the Spark session.

On one machine the session is small. On a cluster the user's configuration applies. Only settings
that the analysis needs are changed, and only if neither the given master nor `spark-submit` sets
them.
"""

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_RELEASE_MIN = 17
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets. If it is set, the master is already chosen."""

WORKER_WAIT_S = 120.0
"""Time limit for a cluster to provide a worker. Spark itself would wait forever."""
_POLL_S = 0.2


class EngineError(RuntimeError):
    """Raised if Spark cannot run on this machine. The message says what is missing."""


def check_java() -> str:
    """Return the path of the Java for Spark. Raises EngineError if Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "on the PATH"
    if not found or not os.access(found, os.X_OK):
        raise EngineError(
            f"Spark needs Java {JAVA_RELEASE_MIN} or newer, and none was found ({where}): install "
            f"it (Debian: default-jre-headless), or use the local engine, which needs no Java"
        )
    release = Path(found).resolve().parent.parent / "release"
    version = _java_release(release.read_text("utf-8", "replace")) if release.is_file() else 0
    if 0 < version < JAVA_RELEASE_MIN:
        raise EngineError(
            f"Spark needs Java {JAVA_RELEASE_MIN} or newer, but {found} is Java {version}"
        )
    return found


def first_line(error: Exception) -> str:
    """Return the first line of a Spark error message, without the stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    shown = [line for line in lines if not line.startswith("An error occurred while")]
    return (shown or lines or [type(error).__name__])[0].removeprefix(": ")


def _java_release(text: str) -> int:
    """Return the major Java version from a JRE's `release` file, or 0 if it states none."""
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(found[1]) if found else 0


def start_session(
    master: str | None = None, settings: dict[str, str] | None = None
) -> "SparkSession":
    """Start a Spark session with the `aeron.` data sources on `master`, by default `local[*]`.

    Raises EngineError if Spark or Java is missing, or if a cluster provides no worker in time.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            f"Spark is not installed ({error}): install windtunnel[spark], or use the local engine"
        ) from error
    from windtunnel.reports.analysis.sources.pcap_source import AeronPcap
    from windtunnel.reports.analysis.sources.recording_source import AeronRecording
    from windtunnel.reports.analysis.sources.run_source import SOURCES

    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("windtunnel analyze")
    if master is None and _SUBMITTED not in os.environ:
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if (master or "").startswith("local"):
        # Spark's default of 200 suits a cluster. Here, each partition makes a worker import its
        # modules.
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark failed to start: {first_line(error)}") from error
    _await_worker(session)
    for source in (AeronPcap, AeronRecording, *SOURCES):
        session.dataSource.register(source)
    return session


def _await_worker(session: "SparkSession") -> None:
    """Wait until the cluster provides a first worker. Raises EngineError after WORKER_WAIT_S."""
    context = session.sparkContext
    allocates_later = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if str(context.master).startswith("local") or allocates_later:
        return
    jvm: Any = context._jsc
    deadline_s = time.monotonic() + WORKER_WAIT_S
    # The list includes the session itself.
    while len(jvm.sc().statusTracker().getExecutorInfos()) < 2:
        if time.monotonic() >= deadline_s:
            session.stop()
            raise EngineError(
                f"{context.master} provided no worker within {WORKER_WAIT_S:g} s: check that a "
                "worker is registered, and that it has the requested cores and memory "
                "(spark.executor.cores, spark.executor.memory)"
            )
        time.sleep(_POLL_S)
