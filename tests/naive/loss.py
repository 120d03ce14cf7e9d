"""Reference implementation of the loss models, packet by packet."""

import numpy as np

from windtunnel.harness.scenario.schema.units import BILLION


def losses_of(loss, chance):
    """Return whether each packet is lost; `chance` holds two numbers from 0 to 1 for each."""
    shares = [share / BILLION for share in loss.shares_ppb]
    models = {"iid": _independent, "gilbert-elliott": _two_states, "four-state": _four_states}
    return np.array(models[loss.model](shares, chance), dtype=np.int64)


def _independent(shares, chance):
    return [first < shares[0] for first in chance[0]]


def _two_states(shares, chance):
    worse, better, bad_loss, good_loss = shares
    bad = False
    found = []
    for move_draw, loss_draw in zip(*chance, strict=True):
        found.append(loss_draw < (bad_loss if bad else good_loss))
        if move_draw < (better if bad else worse):
            bad = not bad
    return found


def _four_states(shares, chance):
    p13, p31, p32, p23, p14 = shares
    state = 1
    found = []
    for move_draw in chance[0]:
        if state == 1:
            state = 4 if move_draw < p14 else 3 if move_draw < p14 + p13 else 1
        elif state == 2:
            state = 3 if move_draw < p23 else 2
        elif state == 3:
            state = 2 if move_draw < p32 else 1 if move_draw < p32 + p31 else 3
        else:
            state = 1
        found.append(state in (3, 4))
    return found
