"""A run whose budget ends while datagrams are in flight is the driver's failure."""

import pytest

from tests.sim.real_runs import real_runs
from windtunnel.harness.artifact.middlebox.ledger import Ledger

# A machine's first run compiles every kernel of the simulator.
pytestmark = pytest.mark.timeout(900)

SCENARIO = """
schema: windtunnel/1
name: over/budget
about: A link whose round trip is nearly half as long as the run may take.
seeds: {root: 16}
fidelity: [sim]
network:
  hosts: [a, b]
  link: {between: [a, b], impairments: {both: {delay: {mean: 400ms}}}}
traffic:
  - id: one
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k"
    receive: "aeron:udp?endpoint=${b}:24325"
    content: {bytes: 1MiB, message: {from: 1B, to: max}}
faults:
  - {id: late, where: {link: b->a}, what: {type: SM}, act: {hold: {share: 50%, for: 300ms}}}
expect: [delivered_once]
budget: {wall: 2s}
"""


@pytest.mark.parametrize("driver", ["ours", "pyaeron"])
def test_incomplete_traffic_is_the_drivers_failure(tmp_path, driver):
    if driver == "pyaeron":
        pytest.importorskip("pyaeron")
    file = tmp_path / "over" / "budget.yaml"
    file.parent.mkdir()
    file.write_text(SCENARIO)
    with real_runs(tmp_path) as run:
        result, folder = run(file, driver, driver)
    assert result.outcome == "FAIL", result.reason
    assert result.reason.startswith("subject_lived")
    assert "the budget of 2 s of simulated time ran out; still running: b/sub" in result.reason
    ledger = Ledger.read(folder.ledger)
    assert ledger is not None
    for account in ledger.links.values():
        assert account.impairments is not None
        assert account.impairments.waiting_at_end == account.datagrams_held_at_end == 0
        assert account.impairments.sent > 0
