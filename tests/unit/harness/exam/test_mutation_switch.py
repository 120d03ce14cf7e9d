"""Each process has its own number of the active mutant, even in a kernel from the cache."""

import os
import subprocess
import sys

import pytest

from windtunnel.harness.exam.mutation_switch import COUNTS, EXECUTIONS, VARIABLE
from windtunnel.harness.exam.worker_run import EXECUTIONS_FILE, executions_in
from windtunnel.harness.installation import ROOT as REPOSITORY

PROGRAM = """
import numba
from windtunnel.harness.exam import mutation_switch as switch

@numba.njit(cache=True)
def read(more):
    switch.count(0)
    switch.count(17)
    return switch.number() + more

print(switch.number_in_python(), read(1), sum(read.stats.cache_hits.values()))
switch.count_in_python(0)
"""


# Processes import numba, and one of them compiles.
@pytest.mark.timeout(300)
def test_a_cached_kernel_reads_the_number_of_its_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    counted = tmp_path / EXECUTIONS_FILE
    counted.write_bytes(bytes(8 * COUNTS))
    printed = [
        subprocess.run(
            [sys.executable, str(program)],
            env={**os.environ, **given, "PYTHONPATH": str(REPOSITORY), "NUMBA_DISABLE_JIT": "0"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.split()
        for given in ({VARIABLE: "0"}, {VARIABLE: "17", EXECUTIONS: str(counted)}, {VARIABLE: "3"})
    ]
    assert printed == [["0", "1", "0"], ["17", "18", "1"], ["3", "4", "1"]]
    # In the kernel and in Python, in the only process that was given the file.
    assert executions_in(tmp_path) == {0: 2, 17: 1}


FORKED = """
import os
from windtunnel.harness.exam import mutation_switch as switch

pid = os.fork()
if pid == 0:
    os.environ |= {switch.VARIABLE: "17", switch.EXECUTIONS: os.environ["COUNTED"]}
    switch.activate()
    switch.count_in_python(0)
    os._exit(switch.number_in_python())
switch.count_in_python(5)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), switch.number_in_python())
"""


def test_a_forked_program_has_its_own_number_and_counts(tmp_path):
    program, counted = tmp_path / "program.py", tmp_path / EXECUTIONS_FILE
    program.write_text(FORKED)
    counted.write_bytes(bytes(8 * COUNTS))
    printed = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "COUNTED": str(counted)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.split()
    assert printed == ["17", "0"]
    assert executions_in(tmp_path) == {0: 1}
