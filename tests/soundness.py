"""What a test of a real run may ask for on a machine that it shares with others."""

from pathlib import Path

from harness.verdict import overload
from harness.verdict.judge import Verdict, judge
from harness.verdict.outcome import Outcome


def assert_sound(run_dir: Path) -> Verdict:
    """The run passed; or it did not for the one reason that this machine was too slow to tell.

    What bytes, or cause and effect, prove is a FAIL on the slowest machine, too.
    """
    verdict = judge(run_dir)
    if verdict.outcome is not Outcome.PASS:
        shut = {gate.name for gate in verdict.gates if gate.outcome is not Outcome.PASS}
        assert verdict.outcome is Outcome.INCONCLUSIVE, verdict.reason
        assert shut == {overload.NAME}, verdict.reason
    return verdict
