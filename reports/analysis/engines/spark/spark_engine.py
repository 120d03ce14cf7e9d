"""Spark as an engine: its session, and what must be there before one can begin.

A session of ours is small on one machine and what the user's cluster says elsewhere: only what the
analysis needs is set, and nothing that a given master or an outer `spark-submit` has set.
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
"""Set by spark-submit, which has chosen a master already."""

WORKER_WAIT_S = 120.0
"""How long a cluster may take to lend a worker; Spark itself would wait for ever."""
_LOOK_S = 0.2


class EngineError(RuntimeError):
    """This machine cannot run Spark; the text says what is missing and how to get it."""


def check_java() -> str:
    """The Java that Spark will start. Raises EngineError if there is none, or an old one."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "on the PATH"
    if not found or not os.access(found, os.X_OK):
        raise EngineError(
            f"Spark needs Java {JAVA_RELEASE_MIN} or newer and there is none ({where}); install "
            "one (Debian: default-jre-headless), or use the local engine, which needs none"
        )
    release = Path(found).resolve().parent.parent / "release"
    version = _java_release(release.read_text("utf-8", "replace")) if release.is_file() else 0
    if 0 < version < JAVA_RELEASE_MIN:
        raise EngineError(
            f"Spark needs Java {JAVA_RELEASE_MIN} or newer; {found} is Java {version}"
        )
    return found


def first_line(error: Exception) -> str:
    """What an error of Spark says before it shows how it came to that."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    shown = [line for line in lines if not line.startswith("An error occurred while")]
    return (shown or lines or [type(error).__name__])[0].removeprefix(": ")


def _java_release(text: str) -> int:
    """The release that a JRE's `release` file tells; 0 if it tells none."""
    found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(found[1]) if found else 0


def start_session(
    master: str | None = None, settings: dict[str, str] | None = None
) -> "SparkSession":
    """A session that knows the `aeron.` sources, on `master`; if nobody says otherwise `local[*]`.

    Raises EngineError when Spark or Java is missing, and when a cluster lends no worker in time.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            f"Spark is not installed ({error}); install windtunnel[spark], or use the local engine"
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
        # Spark's own 200 are for a cluster; here each costs a worker its imports.
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise EngineError(f"Spark does not start: {first_line(error)}") from error
    _await_worker(session)
    for source in (AeronPcap, AeronRecording, *SOURCES):
        session.dataSource.register(source)
    return session


def _await_worker(session: "SparkSession") -> None:
    """Wait until a cluster has lent the first worker. Raises EngineError."""
    context = session.sparkContext
    asks_later = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if str(context.master).startswith("local") or asks_later:
        return
    jvm: Any = context._jsc
    deadline_s = time.monotonic() + WORKER_WAIT_S
    # The session itself is one of those that are told.
    while len(jvm.sc().statusTracker().getExecutorInfos()) < 2:
        if time.monotonic() >= deadline_s:
            session.stop()
            raise EngineError(
                f"{context.master} lent no worker within {WORKER_WAIT_S:g} s; are any registered "
                "with it, and has one of them the cores and the memory that are asked for "
                "(spark.executor.cores, spark.executor.memory)?"
            )
        time.sleep(_LOOK_S)
