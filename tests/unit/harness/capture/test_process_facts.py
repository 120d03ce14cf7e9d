"""Processor time and memory, parsed from files in /proc."""

import os
import time

import pytest

from windtunnel.harness.capture import process_facts

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STATUS = "Name:\tdriver\nVmRSS:\t    2048 kB\nRssAnon:\t     512 kB\nRssFile:\t    1536 kB\n"


def stat(name: str, user: int, system: int) -> str:
    before = "S 1 2 3 4 5 6 7 8 9 10"
    return f"42 ({name}) {before} {user} {system} 99 98 20 0 3 0\n"


@pytest.mark.parametrize("name", ["driver", "a b", "odd) (name", ""])
def test_reads_user_and_system_time_whatever_the_name(name):
    assert process_facts.parse_processor_ns(stat(name, 300, 200)) == 500 * TICK_NS


def test_reads_resident_and_private_memory():
    assert process_facts.parse_memory(STATUS) == process_facts.Memory(2 << 20, 512 << 10)


def test_a_process_without_memory_has_none():
    assert process_facts.parse_memory("Name:\tkthread\n") == process_facts.Memory(0, 0)


def test_agrees_with_the_figures_of_this_process():
    before_s = time.process_time()
    seen_s = process_facts.processor_ns(os.getpid()) / 1e9
    after_s = time.process_time()
    slack_s = 4 * TICK_NS / 1e9
    assert before_s - slack_s <= seen_s <= after_s + slack_s
    assert process_facts.memory(os.getpid()).resident > 1 << 20


def test_a_process_that_has_ended_is_an_error():
    with pytest.raises(OSError, match="No such file"):
        process_facts.processor_ns(1 << 30)
