"""The rate of simulated trials, from synthetic lines."""

import json
import os
import time

import pytest

from windtunnel.harness.bench import swarm
from windtunnel.harness.bench.plan import BenchSettings
from windtunnel.harness.bench.swarm import measure_swarm, parse_trials, reading


def trial(elapsed_s, seed=0, frames=100, violation="", defect=""):
    return {
        "kind": "trial",
        "elapsed_s": elapsed_s,
        "seed": seed,
        "frames": frames,
        "violation": violation,
        "defect": defect,
    }


def test_rate_counts_from_the_first_trial_on():
    made = reading([trial(10.0), trial(10.5, frames=200), trial(11.0, frames=400)], 0.0, 60.0, 2)
    assert made.void == ""
    assert made.round_index == 2
    assert made.values == {"trials": 120.0, "frames": 300.0}


def test_the_measurement_ends_after_the_requested_seconds():
    made = reading([trial(each) for each in (10.0, 11.0, 12.0, 13.5, 14.0)], 0.0, 2.0, 0)
    assert made.values["trials"] == 60.0


def test_trials_of_the_warm_up_do_not_count():
    made = reading([trial(each) for each in (10.0, 10.9, 11.0, 11.5, 12.0, 13.5)], 1.0, 2.0, 0)
    assert made.values["trials"] == 120.0
    assert reading([trial(10.0), trial(10.9)], 1.0, 2.0, 0).void


def test_a_trial_longer_than_the_warm_up_counts_from_its_beginning():
    assert reading([trial(10.0), trial(12.0), trial(13.0)], 1.0, 5.0, 0).values["trials"] == 40.0


def test_one_slow_trial_is_still_a_rate():
    assert reading([trial(10.0), trial(40.0)], 0.0, 2.0, 0).values["trials"] == 2.0


def test_any_error_makes_the_reading_void():
    made = reading([trial(10.0), trial(10.5, seed=7, violation="rcv-hwm fell")], 0.0, 60.0, 0)
    assert made.void == "seed 7: rcv-hwm fell"
    made = reading([trial(10.0, seed=8, defect="a defect")], 0.0, 60.0, 0)
    assert made.void == "seed 8: a defect"


def test_a_swarm_without_output_is_void():
    assert reading([], 0.0, 60.0, 0).void
    assert reading([trial(10.0)], 0.0, 60.0, 0).void


def test_only_complete_lines_about_trials_are_read():
    first, last = json.dumps(trial(1.0)), json.dumps({"kind": "swarm"})
    assert parse_trials(f"{first}\nwarning: of no matter\n{last}\n{first[:20]}") == [trial(1.0)]
    assert parse_trials("") == parse_trials(first) == []


class FakeSimulator:
    """Completes a trial at each of three polls, and caches a kernel before one of them."""

    def __init__(self, log, image, compiled_at):
        self.log, self._image, self._compiled_at, self._count = log, image, compiled_at, 0
        log.write_text("")

    def poll(self):
        if self._count == self._compiled_at:
            self._image.write_bytes(b"")
            os.utime(self._image, ns=(time.time_ns(), time.time_ns()))
        with self.log.open("a") as file:
            file.write(json.dumps(trial(10.0 + self._count)) + "\n")
        self._count += 1
        return 0 if self._count == 3 else None

    def kill(self):
        pass


@pytest.mark.parametrize(("compiled_at", "is_void"), [(None, False), (0, False), (1, True)])
def test_a_kernel_that_is_compiled_after_the_first_trial_makes_the_reading_void(
    tmp_path, monkeypatch, compiled_at, is_void
):
    image = tmp_path / "sources" / "kernel.image"
    image.parent.mkdir()
    monkeypatch.setattr(swarm, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(
        swarm, "LocalProcess", lambda *_, log, **__: FakeSimulator(log, image, compiled_at)
    )
    made = measure_swarm(BenchSettings(warm_up_s=0.0), tmp_path, 0)
    assert ("compiled" in made.void) == is_void
    assert is_void or made.values["trials"] == 60.0
