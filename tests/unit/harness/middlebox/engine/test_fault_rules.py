"""Compilation of the case's faults to the table that the kernel reads."""

import numpy as np
import pytest

from tests.unit.harness.middlebox.synthetic_case import case, fault
from windtunnel.harness.artifact.middlebox import decision, frame_class
from windtunnel.harness.middlebox.engine.prf import DRAW_BITS, subject
from windtunnel.harness.middlebox.engine.rule_draw import matches
from windtunnel.harness.middlebox.rule_compiler import compile_rules
from windtunnel.harness.middlebox.rules import CLASSES, NO_RULE, class_index


def first_of(rules, position):
    """Return the first rule that matches the DATA frame at a position, or NO_RULE."""
    chains = np.zeros((len(rules), 1), dtype=np.uint8)
    what = subject(0, class_index(frame_class.DATA), 0, 0)
    for rule in range(len(rules)):
        if matches(rules, chains, rule, 0, 3, what, position, 1):
            return rule
    return NO_RULE


def test_class_index_is_dense_and_in_order_of_code():
    assert [class_index(code) for code in CLASSES] == list(range(len(CLASSES)))
    assert set(CLASSES) == set(frame_class.NAMES)


def test_compiles_every_field():
    rules, _, _ = compile_rules(
        case(
            fault("drop", 0.02, ("DATA", "HEARTBEAT"), ("b->a",)),
            fault("hold", 1.0, ("PAD",), ("a->b", "b->a"), hold_ns=5),
            fault("swap", 0.5),
        )
    )
    assert rules["action"].tolist() == [decision.DROP, decision.HOLD, decision.SWAP]
    assert rules["links"].tolist() == [0b10, 0b11, 0b01]
    assert rules["delay_ns"].tolist() == [0, 5, 1_000_000]
    assert rules["classes"].tolist() == [
        1 << class_index(frame_class.DATA) | 1 << class_index(frame_class.HEARTBEAT),
        1 << class_index(frame_class.PAD),
        1 << class_index(frame_class.DATA),
    ]
    assert rules["threshold"].tolist() == [(1 << DRAW_BITS) // 50, 1 << DRAW_BITS, 1 << 61]


@pytest.mark.parametrize(("share", "least", "most"), [(0.02, 1830, 2170), (1.0, 10**5, 10**5)])
def test_a_share_is_met(share, least, most):
    rules, _, _ = compile_rules(case(fault("drop", share)))
    fired = sum(first_of(rules, 32 * place) != NO_RULE for place in range(10**5))
    assert least <= fired <= most  # 3.8 standard deviations


def test_rules_draw_independently():
    rules, _, _ = compile_rules(case(fault("drop", 0.5), fault("duplicate", 0.5)))
    fired = [first_of(rules, 32 * place) for place in range(4000)]
    assert 1850 < fired.count(0) < 2150
    assert 850 < fired.count(1) < 1150
