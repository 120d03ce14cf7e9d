"""Some of the kills that `python -m tests.archive.server_killed` performs by the hundred."""

import random

import pytest

from tests.archive.server_killed import Killer


@pytest.fixture(scope="module")
def killer(tmp_path_factory):
    made = Killer(tmp_path_factory.mktemp("killed"))
    yield made
    made.close()


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("seed", range(2))
def test_frames_that_were_reported_as_written_survive_a_kill(killer, seed):
    chance = random.Random(seed)
    moments = [killer.moment(chance) for _ in range(15)]
    assert sum(each.position > 0 for each in moments) > 5
