"""Idle strategies by name and arguments."""

import pytest

from windtunnel.driver.base import idle
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.settings.idle_strategy import STRATEGIES, make_idle_strategy

VARIABLE = "AERON_SENDER_IDLE_STRATEGY_INIT_ARGS"


def parts_of(strategy, init_args):
    rec = make_idle_strategy(VARIABLE, strategy, init_args)[0]
    return rec.mode, rec.spins_max, rec.yields_max, rec.park_ns_min, rec.park_ns_max


@pytest.mark.parametrize(
    ("strategy", "init_args", "expected"),
    [
        ("backoff", "", (idle.BACKOFF, 0, 60, 1_000, 1_000_000)),
        ("backoff", "1-2-3us-4ms", (idle.BACKOFF, 1, 2, 3_000, 4_000_000)),
        ("aeron_idle_strategy_backoff", "10 20 1us 1ms", (idle.BACKOFF, 10, 20, 1_000, 1_000_000)),
        ("backoff", "0-0-5-6ns", (idle.BACKOFF, 0, 0, 5, 6)),
    ],
)
def test_backing_off_takes_four_arguments(strategy, init_args, expected):
    assert parts_of(strategy, init_args) == expected


@pytest.mark.parametrize(("init_args", "expected"), [("", 1), ("1us", 1_000), ("1s", 10**9)])
@pytest.mark.parametrize("name", ["sleeping", "sleep-ns", "aeron_idle_strategy_sleeping"])
def test_sleeping_takes_a_duration(name, init_args, expected):
    mode, _, _, park_ns, _ = parts_of(name, init_args)
    assert (mode, park_ns) == (idle.SLEEP, expected)


@pytest.mark.parametrize("name", sorted(set(STRATEGIES) - {"backoff", "sleep-ns"}))
def test_every_spelling_selects_a_strategy(name):
    assert parts_of(name, "")[0] in (idle.SPIN, idle.YIELD, idle.SLEEP, idle.BACKOFF)


def test_a_strategy_without_arguments_ignores_them():
    assert parts_of("noop", "whatever")[0] == idle.SPIN


@pytest.mark.parametrize(
    ("strategy", "init_args"),
    [
        ("backoff", "1-2-3us"),
        ("backoff", "1-2-3us-4ms-5"),
        ("backoff", "a-2-3us-4ms"),
        ("backoff", "1-2-3h-4ms"),
        ("backoff", "1-2-3us-2s"),
        ("backoff", "99999999999-2-3us-4ms"),
        ("sleeping", "1001ms"),
        ("sleeping", "soon"),
    ],
)
def test_invalid_arguments_are_rejected_with_the_name_of_their_setting(strategy, init_args):
    with pytest.raises(ConfigurationError, match=VARIABLE):
        make_idle_strategy(VARIABLE, strategy, init_args)
