"""Some moments of what `python -m tests.archive.server_killed` does by the hundred."""

import random

import pytest

from tests.archive.server_killed import Killer


@pytest.mark.parametrize("seed", range(2))
def test_what_was_said_to_be_written_survives_a_kill(tmp_path, seed):
    chance = random.Random(seed)
    killer = Killer(tmp_path)
    try:
        moments = [killer.moment(chance) for _ in range(15)]
    finally:
        killer.close()
    assert sum(each.position > 0 for each in moments) > 5
