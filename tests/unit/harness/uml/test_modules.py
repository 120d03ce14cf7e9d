"""The order in which kernel modules are loaded."""

from windtunnel.harness.uml.modules import load_order

DEPENDENCIES = """\
kernel/net/bridge/bridge.ko: kernel/net/802/stp.ko kernel/net/llc/llc.ko
kernel/net/802/stp.ko: kernel/net/llc/llc.ko
kernel/net/llc/llc.ko:
kernel/net/sched/sch_netem.ko:
kernel/net/netfilter/xt-nat.ko: kernel/net/llc/llc.ko
"""


def names(*expected):
    return [file.rpartition("/")[2] for file in load_order(DEPENDENCIES, expected)]


def test_dependencies_are_loaded_first():
    assert names("bridge") == ["llc.ko", "stp.ko", "bridge.ko"]


def test_nothing_is_loaded_twice():
    assert names("stp", "bridge", "stp") == ["llc.ko", "stp.ko", "bridge.ko"]


def test_a_name_without_a_module_is_built_in():
    assert names("af_packet", "sch_netem") == ["sch_netem.ko"]


def test_a_dash_in_a_file_is_an_underscore_in_a_name():
    assert names("xt_nat") == ["llc.ko", "xt-nat.ko"]
