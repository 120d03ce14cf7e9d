"""Whether a run was simulated, on virtual time, where drivers are never late."""

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.core.finding import Missing

_SIMULATED = "sim"


def is_virtual(case: Case | Missing) -> bool:
    """Return whether a run was simulated, so that its drivers' times are exact."""
    return not isinstance(case, Missing) and case.fidelity == _SIMULATED
