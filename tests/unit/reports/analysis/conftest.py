"""One Spark session for all tests that need one: two threads, no page, few partitions."""

import pytest

from windtunnel.reports.analysis.engines.spark.spark_engine import EngineError, start_session

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    settings = {**SETTINGS, "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    try:
        session = start_session("local[2]", settings)
    except EngineError as error:
        pytest.skip(str(error))
    yield session
    session.stop()
