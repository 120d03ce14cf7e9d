"""Spark gives the same rows as one process, for a group and for an unreliable stream."""

import pytest

from tests.stand_ins.lossy_stream import LossyStream, Plan
from windtunnel.reports.analysis.analyze import analyze

PLANS = [
    Plan(7, frames=150, receivers=2, in_group=True, loss=0.05, resend_loss=0.2, sees_others=True),
    Plan(3, frames=150, loss=0.05, late=0.05, is_reliable=False),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_both_engines_give_the_same_rows(spark, tmp_path, plan):
    folder = str(LossyStream(plan).write(tmp_path))
    here, there = analyze([folder]), analyze([folder], spark=spark)
    for name, table in here.named().items():
        assert getattr(there, name).to_pylist() == table.to_pylist(), name
