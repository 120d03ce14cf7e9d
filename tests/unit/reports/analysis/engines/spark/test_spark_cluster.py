"""A standalone Spark cluster of a master and two workers computes the same tables.

master <-- worker, worker <-- windtunnel analyze --master spark://...
                          <-- spark-submit harness/__main__.py analyze ... --spark
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from tests.golden.reader import GOLDEN
from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, check_java

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.timeout(600)]
REPOSITORY = Path(__file__).resolve().parents[6]
SPARK_HOME = Path(pyspark.__file__).parent
START_LIMIT_S = 120
CAPTURE = GOLDEN / "loss-reliable" / "capture.pcap.xz"
MASTER_URL = r"Starting Spark master at (\S+)\n"
MADE_BY_RUN = {"captures"}
"""Tables that name files by their path, which is the same here and there."""


class Cluster:
    """Daemons of Spark, which are stopped at the end of the tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(REPOSITORY),
        }

    def start(self, name: str, *arguments: str) -> Path:
        """Start a daemon and return its log."""
        log = self._folder / f"{name}-{len(self._running)}.log"
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{arguments[0]}"]
        with log.open("wb") as file:
            self._running.append(
                subprocess.Popen(
                    [*command, *arguments[1:]], env=self.environment, stdout=file, stderr=file
                )
            )
        return log

    def stop(self) -> None:
        for each in reversed(self._running):
            each.terminate()
            each.wait(120)


def await_match(log: Path, pattern: str) -> str:
    """Wait until the log matches a pattern, and return its first group."""
    deadline_s = time.monotonic() + START_LIMIT_S
    while (found := re.search(pattern, log.read_text())) is None:
        assert time.monotonic() < deadline_s, log.read_text()[-2000:]
        time.sleep(0.2)
    return found[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    try:
        check_java()
    except EngineError as error:
        pytest.skip(str(error))
    daemons = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = await_match(daemons.start("master", "master.Master", *ports), MASTER_URL)
        for _ in range(2):
            size = ("--cores", "1", "--memory", "1500m")
            log = daemons.start("worker", "worker.Worker", *ports, *size, url)
            await_match(log, r"(Successfully registered) with master")
        yield daemons, url
    finally:
        daemons.stop()


def document(cluster: Cluster, *command: object) -> dict:
    done = subprocess.run(
        [str(each) for each in command],
        env=cluster.environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return json.loads(done.stdout)


def test_a_cluster_computes_the_tables_of_the_local_engine(cluster):
    daemons, url = cluster
    analyze = (sys.executable, "-m", "windtunnel.harness", "analyze", f"x={CAPTURE}", "--json")
    local_result = document(daemons, *analyze)
    assert document(daemons, *analyze, "--master", url) == local_result
    assert len(local_result["gaps"]) == 57


def test_uses_the_settings_of_spark_submit(cluster):
    daemons, url = cluster
    program = SPARK_HOME / "bin" / "spark-submit"
    submit = (program, "--master", url, "--conf", "spark.log.level=ERROR")
    result = document(
        daemons, *submit, REPOSITORY / "harness" / "__main__.py", "analyze", f"x={CAPTURE}",
        "--spark", "--json",
    )  # fmt: skip
    assert len(result["gaps"]) == 57


def test_a_master_without_workers_is_reported_after_a_time_limit(cluster, tmp_path):
    daemons, _ = cluster
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    url = await_match(daemons.start("lonely", "master.Master", *ports), MASTER_URL)
    program = (
        "from windtunnel.reports.analysis.engines.spark import spark_engine as engine\n"
        "engine.WORKER_WAIT_S = 2.0\n"
        "try:\n"
        f"    engine.start_session({url!r}, {{'spark.ui.enabled': 'false'}})\n"
        "except engine.EngineError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=daemons.environment, cwd=REPOSITORY,
        capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(f"{url} provided no worker within 2 s"), done.stderr[-2000:]
