"""From the case's faults to the table that the kernel walks."""

import pytest

from harness.artifact import decision, frame_class
from harness.middlebox.prf import DRAW_BITS
from harness.middlebox.rules import CLASSES, NO_RULE, class_index, compile_rules, first_that_fires
from tests.unit.harness.middlebox.made import case, fault


def test_class_index_is_dense_and_in_order_of_code():
    assert [class_index(code) for code in CLASSES] == list(range(len(CLASSES)))
    assert set(CLASSES) == set(frame_class.NAMES)


def test_compiles_every_field():
    rules = compile_rules(
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
    rules = compile_rules(case(fault("drop", share)))
    data = class_index(frame_class.DATA)
    fired = sum(
        first_that_fires(rules, 3, 0, data, 0, 32 * place, 1) != NO_RULE for place in range(10**5)
    )
    assert least <= fired <= most  # 3.8 deviations


def test_rules_draw_apart_from_each_other():
    rules = compile_rules(case(fault("drop", 0.5), fault("duplicate", 0.5)))
    data = class_index(frame_class.DATA)
    fired = [first_that_fires(rules, 3, 0, data, 0, 32 * place, 1) for place in range(4000)]
    assert 1850 < fired.count(0) < 2150
    assert 850 < fired.count(1) < 1150
