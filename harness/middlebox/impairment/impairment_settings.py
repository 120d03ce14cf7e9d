"""The settings of the relay's impairments, as tables that compiled kernels can read.

ImpairmentCase --> settings[link]   thresholds of a draw of 32 bits, nanoseconds, bits per second
            --> jitters[link]    the delay's deviation at each of 4096 quantiles
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.impairment_case import ImpairmentCase
from windtunnel.harness.scenario.schema.jitter import JITTERS, deviations
from windtunnel.harness.scenario.schema.units import BILLION

DRAW_BITS = 32

# Columns of `settings`. Each loss model has columns of its parameters.
ON, MODEL, DELAY_NS, RATE, QUEUE, DUPLICATE, CORRUPT, REORDER, GAP = range(9)
GOOD_LOSS, GOOD_TO_BAD, BAD_TO_GOOD, BAD_LOSS = range(9, 13)
P13, P31, P32, P23, P14 = range(13, 18)
SETTINGS = 18

# Values of MODEL.
NO_LOSS, ONE_STATE, TWO_STATES, FOUR_STATES = range(4)

_MODELS = {
    "iid": (ONE_STATE, (GOOD_LOSS,)),
    "gilbert-elliott": (TWO_STATES, (GOOD_TO_BAD, BAD_TO_GOOD, BAD_LOSS, GOOD_LOSS)),
    "four-state": (FOUR_STATES, (P13, P31, P32, P23, P14)),
}


def threshold(share_ppb: int) -> int:
    """Convert a probability to a threshold. A random 32-bit number is below the threshold with this
    probability.
    """
    return (share_ppb << DRAW_BITS) // BILLION


def settings(impairments: Iterable[ImpairmentCase], link_names: tuple[str, ...]) -> NDArray[Any]:
    """Build the table of impairment settings, except jitter, for all link directions.

    Returns: int64[links, SETTINGS]
    """
    table = np.zeros((len(link_names), SETTINGS), dtype=np.int64)
    for each in impairments:
        row = table[link_names.index(each.link)]
        row[ON] = 1
        row[DELAY_NS] = each.delay_ns
        row[RATE] = each.rate_bits_per_s
        row[QUEUE] = each.queue_packets
        row[DUPLICATE] = threshold(each.duplicate_ppb)
        row[CORRUPT] = threshold(each.corrupt_ppb)
        row[REORDER] = threshold(each.reorder_ppb)
        row[GAP] = each.reorder_gap
        if each.loss is not None:
            row[MODEL], columns = _MODELS[each.loss.model]
            for column, share_ppb in zip(columns, each.loss.shares_ppb, strict=True):
                row[column] = threshold(share_ppb)
    return table


def jitters(impairments: Iterable[ImpairmentCase], link_names: tuple[str, ...]) -> NDArray[Any]:
    """Build a table of random deviations from the delay, in nanoseconds, for all link
    directions.

    Returns: int64[links, JITTERS]
    """
    table = np.zeros((len(link_names), JITTERS), dtype=np.int64)
    for each in impairments:
        if each.jitter_ns:
            shape = deviations(each.distribution)
            table[link_names.index(each.link)] = np.rint(shape * each.jitter_ns)
    return table


def behind_netem(case: Case) -> NDArray[np.int64]:
    """Return, for each port, whether netem can drop the packets that the relay sends there. A
    packet that netem drops does not count as a send failure.
    """
    found = np.zeros(len(case.hosts), dtype=np.int64)
    if any(
        each.queue_packets and case.backend_of(each.link) == "netem" for each in case.impairments
    ):
        found[:] = 1
    return found
