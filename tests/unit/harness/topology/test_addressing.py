"""Addresses follow from the run id, and the subnets of a run never overlap."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.harness.topology import addressing


@given(run_id=st.text(max_size=40), attempt=st.integers(0, 10**6))
def test_every_subnet_of_a_run_lies_in_its_block_and_overlaps_no_other(run_id, attempt):
    block = addressing.block(run_id, attempt)
    subnets = [addressing.subnet(run_id, i, attempt) for i in range(addressing.HOSTS_MAX)]
    assert block.subnet_of(ipaddress.IPv4Network("10.64.0.0/10"))
    assert all(subnet.subnet_of(block) for subnet in subnets)
    assert len(set(subnets)) == addressing.HOSTS_MAX
    assert sum(subnet.num_addresses for subnet in subnets) == block.num_addresses


def test_the_same_run_id_gives_the_same_addresses():
    assert addressing.block("20260101T000000Z-abcd/x-s1") == ipaddress.IPv4Network("10.94.40.0/24")
    assert addressing.token("20260101T000000Z-abcd/x-s1") == "ec0e1695"


def test_each_attempt_gives_another_block():
    blocks = {addressing.block("a run", attempt) for attempt in range(100)}
    assert len(blocks) == 100


def test_blocks_of_many_runs_rarely_collide():
    blocks = [addressing.block(f"run {number}") for number in range(100)]
    assert len(set(blocks)) >= 98


@pytest.mark.parametrize("index", [-1, addressing.HOSTS_MAX])
def test_refuses_a_host_beyond_the_block(index):
    with pytest.raises(ValueError, match=r"expected 0\.\.31"):
        addressing.subnet("a run", index)
