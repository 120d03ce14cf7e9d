"""A short attack on shared memory; `python -m tests.fuzz` runs the full one."""

import pytest

from tests.fuzz import shared_memory
from windtunnel.driver.kernels.jit import JIT_DISABLED


@pytest.mark.parametrize("seed", [20263, pytest.param(20264, marks=pytest.mark.full)])
def test_corrupted_files_of_clients_stop_neither_the_driver_nor_other_streams(tmp_path, seed):
    turns = 20 if JIT_DISABLED else 800
    assert shared_memory.attack(tmp_path, turns, seed) > 100 * turns
