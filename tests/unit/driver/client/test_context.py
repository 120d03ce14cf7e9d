"""Settings of a client are checked together, at their bounds."""

from pathlib import Path

import pytest

from driver.base.errors import ConfigurationError
from driver.client.context import ClientContext

ACCEPTED = [
    {},
    {"driver_timeout_ms": 1},
    {"keepalive_interval_ns": 1_000_000},
    {"idle_sleep_ns": 1_000},
    {"client_name": "n" * 100},
]
REFUSED = [
    ({"driver_timeout_ms": 0}, "driver_timeout_ms is 0"),
    ({"keepalive_interval_ns": 999_999}, "keepalive_interval_ns is 999999"),
    ({"idle_sleep_ns": 999}, "idle_sleep_ns is 999"),
    ({"client_name": "n" * 101}, "client_name has 101 characters"),
]


@pytest.mark.parametrize("settings", ACCEPTED)
def test_what_lies_on_a_bound_is_accepted(settings):
    context = ClientContext(dir=Path("/d"), **settings)
    assert context.conclude() is context


@pytest.mark.parametrize(("settings", "text"), REFUSED)
def test_what_lies_beyond_a_bound_is_refused_by_name_and_value(settings, text):
    with pytest.raises(ConfigurationError, match=text):
        ClientContext(**settings).conclude()


def test_all_failures_are_reported_at_once():
    merged = {key: value for settings, _ in REFUSED for key, value in settings.items()}
    with pytest.raises(ConfigurationError) as refusal:
        ClientContext(**merged).conclude()
    for _, text in REFUSED:
        assert text in str(refusal.value)


def test_the_default_directory_is_the_users_own():
    assert ClientContext().dir.name.startswith("aeron-")
