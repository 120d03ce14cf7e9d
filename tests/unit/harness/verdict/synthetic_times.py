"""The times of offers and deliveries of a synthetic run, for the figures in a verdict's results."""

from collections.abc import Sequence

import numpy as np

from tests.unit.harness.verdict.synthetic_run import TRAFFIC, SyntheticRun
from windtunnel.harness.artifact.host.message_times import DELIVERY_TIME, OFFER_TIME
from windtunnel.harness.artifact.host.offer import OFFER
from windtunnel.harness.artifact.records import write_records


def write_times(run: SyntheticRun, due_ns: Sequence[int], delivered_ns: Sequence[int]) -> None:
    """Write the offers of the first messages, and the times of all offers and deliveries."""
    near, far = run.folder.host("a").publisher(TRAFFIC), run.folder.host("b").subscriber(TRAFFIC)
    lengths, ends = run.plan.lengths.tolist(), run.log.message_ends.tolist()
    offers = [(each, lengths[each], 0, ends[each]) for each in range(len(due_ns))]
    write_records(near.offers, np.array(offers, dtype=OFFER))
    write_records(near.times, np.array(due_ns, dtype=np.int64).view(OFFER_TIME))
    write_records(far.times, np.array(delivered_ns, dtype=np.int64).view(DELIVERY_TIME))
