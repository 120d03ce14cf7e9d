"""The audit's arrays, which kernels receive as one argument."""

import numpy as np

from windtunnel.driver.kernels import native_runtime
from windtunnel.harness.simulator.audit.stream_record import make_audit
from windtunnel.harness.simulator.world.world import NO_AUDIT


def test_runs_and_swarm_trials_share_compiled_kernels():
    """Kernels are compiled for each combination of types; read-only arrays have another type."""
    trial = make_audit(2, 3, 4, np.frombuffer(bytes(8), dtype=np.uint8))
    run = make_audit(0, 0, 0, np.zeros(0, dtype=np.uint8))
    assert native_runtime.key_of(trial) == native_runtime.key_of(run)
    assert native_runtime.key_of(NO_AUDIT) == native_runtime.key_of(run)
