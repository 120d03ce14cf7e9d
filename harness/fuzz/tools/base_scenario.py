"""The scenario from which the attack on the tools makes its run folders and scenario files."""

SCENARIO = r"""# Base of damaged scenarios: one short stream with losses.
schema: windtunnel/1
name: fuzz/base
about: >
  A fifth of the DATA frames of a short stream is dropped.
seeds: {root: 0x5eed0001, count: 1}
fidelity: [sim, netns]
network:
  hosts: [a, b]
  link: {between: [a, b], backend: relay}
traffic:
  - id: orders
    stream: 1001
    from: a
    to: b
    publication: exclusive
    channel: "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=1408|init-term-id=-3|\
      term-id=-3|term-offset=0"
    receive: "aeron:udp?endpoint=${b}:24325|nak-delay=10us"
    content: {bytes: 40KiB, message: {from: 100B, to: 2KiB}}
faults:
  - {id: lose-data, where: {link: a->b}, what: {type: DATA}, act: {drop: 20%}}
expect:
  - delivered_once
  - positions_covered
  - naks_only_for_gaps
  - naks_paced
  - retransmits_identical
  - rcv_pos_reaches_end
  - invalid_packets_zero
budget: {wall: 20s}
"""
