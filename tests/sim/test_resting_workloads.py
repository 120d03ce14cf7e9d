"""Applications on virtual time pause as long as configured."""

import pytest

from tests.sim.simulated import SCENARIOS, run
from windtunnel.harness.artifact.host.application import PublisherFacts, SubscriberFacts
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.workload.pacer import SLACK_NS

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(400)
MS = 1_000_000


def facts_of(result):
    folder = RunDir(result.run_dir)
    publisher = PublisherFacts.read(folder.host("a").publisher("stream").document)
    subscriber = SubscriberFacts.read(folder.host("b").subscriber("stream").document)
    return publisher, subscriber


def test_a_slow_consumer_passes_and_takes_as_long_as_its_pauses(tmp_path):
    result = run(SCENARIOS / "host" / "slow-consumer.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
    publisher, subscriber = facts_of(result)
    assert publisher.back_pressure_count > 0
    assert subscriber.ended_ns - subscriber.started_ns >= 7 * 300 * MS


@pytest.mark.full
def test_a_pausing_publisher_passes_and_takes_as_long_as_its_pauses(tmp_path):
    result = run(SCENARIOS / "host" / "resting-publisher.yaml", tmp_path)
    assert result.outcome == "PASS", result.reason
    publisher, _ = facts_of(result)
    least_ns = 250 * MS + 3 * 250 * MS + 500 * MS
    assert -SLACK_NS <= publisher.ended_ns - publisher.started_ns - least_ns < 100 * MS
