"""Decides with a random draw or a Markov chain whether a fault rule matches a frame.

    independent    draw < share
    two states     a step: good <-> bad; then draw < the state's share
    four states    a step: pass in a gap, pass in a burst, match in a burst, isolated match

Draws are keyed by the identity of the frame. A chain steps on first transmissions only, because
their order does not depend on timing. For a retransmission, the draw is independent and uses the
chain's long-run share, because the order of retransmissions depends on timing.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.middlebox.engine.prf import draws
from windtunnel.harness.middlebox.rules import INDEPENDENT, TWO_STATES

_GOOD, _BAD = 0, 1
_GAP_PASS, _BURST_PASS, _BURST_MATCH, _GAP_MATCH = range(4)


@kernel
def matches(
    rules: Any, chains: Any, rule: int, chain: int, seed: int, what: int, place: int, attempt: int
) -> bool:
    """Return whether a random draw selects a frame for a rule. For a rule with a Markov chain, also
    advance the chain.

    Shapes: rules RULE[n]; chains uint8[n, m]: states of each rule's chains; the others as in
            `prf.draws`
    """
    record = rules[rule]
    first, second = draws(seed, rule, what, place, attempt)
    if record["chance"] == INDEPENDENT or attempt > 1:
        return bool(first < record["threshold"])
    if record["chance"] == TWO_STATES:
        if chains[rule, chain] == _GOOD:
            state = _BAD if first < record["step_0"] else _GOOD
        else:
            state = _GOOD if first < record["step_1"] else _BAD
        chains[rule, chain] = state
        return bool(second < (record["step_2"] if state == _BAD else record["step_3"]))
    state = _next_of_four(record, chains[rule, chain], first)
    chains[rule, chain] = state
    return state in (_BURST_MATCH, _GAP_MATCH)


@kernel
def _next_of_four(record: Any, state: int, drawn: int) -> int:
    """Return the next state of a four-state Markov chain. The record's `step_0` to `step_4` are the
    transition probabilities p13, p31, p32, p23 and p14.
    """
    if state == _GAP_PASS:
        if drawn < record["step_4"]:
            return _GAP_MATCH
        return _BURST_MATCH if drawn < record["step_4"] + record["step_0"] else _GAP_PASS
    if state == _BURST_PASS:
        return _BURST_MATCH if drawn < record["step_3"] else _BURST_PASS
    if state == _BURST_MATCH:
        if drawn < record["step_1"]:
            return _GAP_PASS
        return _BURST_PASS if drawn < record["step_1"] + record["step_2"] else _BURST_MATCH
    return _GAP_PASS
