"""Facts about the machine, and the warning if it is busy."""

from dataclasses import replace

import pytest

from windtunnel.harness.bench.machine import BenchMachine, processor_name, read_machine

QUIET = BenchMachine(
    cores=4, processor="x", kernel="6.1", python="3.13", load_average=2.0
)  # fmt: skip


@pytest.mark.parametrize(("load", "is_busy"), [(0.0, False), (2.0, False), (2.01, True)])
def test_warns_above_half_a_task_a_core(load, is_busy):
    assert bool(replace(QUIET, load_average=load).warning) is is_busy


def test_the_warning_says_what_was_expected_and_found():
    text = replace(QUIET, load_average=3.5).warning
    assert "3.50" in text
    assert "at most 2.00" in text


def test_names_the_processor():
    assert processor_name("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: a\n") == "AMD EPYC"
    assert processor_name("nothing of the kind\n")


def test_reads_the_facts_of_this_machine():
    seen = read_machine()
    assert seen.cores >= 1
    assert seen.load_average >= 0
    assert str(seen.cores) in seen.line
