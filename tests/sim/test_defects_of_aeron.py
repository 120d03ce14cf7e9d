"""The defects of the real C driver in docs/findings.md are still there, and not in ours.

If one of these tests fails because the C driver passes, the defect was mended: change the page, and
remove the exception for it from `harness/simulator/swarm/known_defects.py`.
"""

import pytest

from tests.sim.simulated import SCENARIOS, run
from windtunnel.harness.orchestrate.subjects import peers

pytest.importorskip("pyaeron")
# A machine's first run compiles every kernel of the simulator.
pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]
NEGATIVE = "session-id=-5"


@pytest.mark.parametrize(
    ("driver", "session", "outcome"),
    [
        ("pyaeron", NEGATIVE, "FAIL"),
        ("pyaeron", "session-id=5", "PASS"),
        ("ours", NEGATIVE, "PASS"),
    ],
)
def test_a_negative_session_id_hides_the_stream_id_from_the_c_driver(
    tmp_path, driver, session, outcome
):
    text = (SCENARIOS / "many/same-session.yaml").read_text()
    assert text.count(NEGATIVE) == 2
    file = tmp_path / "same-session.yaml"
    file.write_text(text.replace(NEGATIVE, session))
    tested = peers.pair(driver, driver, "sim", tmp_path / peers.STORE)
    result = run(file, tmp_path, tested=tested)
    assert result.outcome == outcome, result.reason
    if outcome == "FAIL":
        assert "the image was closed at position 0" in result.reason
