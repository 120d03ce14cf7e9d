"""Settings of a client are validated together, at their bounds."""

from pathlib import Path

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.client.context import ClientContext, from_environment

ACCEPTED = [
    {},
    {"driver_timeout_ms": 1},
    {"keepalive_interval_ns": 1_000_000},
    {"idle_sleep_ns": 1_000},
    {"client_name": "n" * 100},
    {"resource_linger_ns": 0, "close_linger_ns": 0},
]
REFUSED = [
    ({"driver_timeout_ms": 0}, "driver_timeout_ms is 0"),
    ({"keepalive_interval_ns": 999_999}, "keepalive_interval_ns is 999999"),
    ({"idle_sleep_ns": 999}, "idle_sleep_ns is 999"),
    ({"resource_linger_ns": -1}, "resource_linger_ns is -1"),
    ({"close_linger_ns": -1}, "close_linger_ns is -1"),
    ({"client_name": "n" * 101}, "client_name has 101 bytes"),
]


@pytest.mark.parametrize("settings", ACCEPTED)
def test_a_value_at_a_bound_is_accepted(settings):
    context = ClientContext(dir=Path("/d"), **settings)
    assert context.conclude() is context


@pytest.mark.parametrize(("settings", "text"), REFUSED)
def test_a_value_beyond_a_bound_is_rejected_with_name_and_value(settings, text):
    with pytest.raises(ConfigurationError, match=text):
        ClientContext(**settings).conclude()


def test_all_failures_are_reported_at_once():
    merged = {key: value for settings, _ in REFUSED for key, value in settings.items()}
    with pytest.raises(ConfigurationError) as refusal:
        ClientContext(**merged).conclude()
    for _, text in REFUSED:
        assert text in str(refusal.value)


def test_the_default_directory_belongs_to_the_user():
    assert ClientContext().dir.name.startswith("aeron-")


ENVIRONMENT = {
    "AERON_DIR": "/somewhere",
    "AERON_DRIVER_TIMEOUT": "0x10",
    "AERON_CLIENT_IDLE_SLEEP_DURATION": "2ms",
    "AERON_CLIENT_RESOURCE_LINGER_DURATION": "5s",
    "AERON_CLIENT_NAME": "wind",
    "AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY": "true",
}


def test_aerons_variables_are_read_from_the_environment():
    assert from_environment(ENVIRONMENT) == ClientContext(
        dir=Path("/somewhere"),
        driver_timeout_ms=16,
        idle_sleep_ns=2_000_000,
        resource_linger_ns=5_000_000_000,
        client_name="wind",
        pre_touch_mapped_memory=True,
    )


def test_overrides_take_precedence_and_their_variables_are_not_read():
    broken = {"AERON_DRIVER_TIMEOUT": "soon", "AERON_DIR": "/d"}
    assert from_environment(broken, driver_timeout_ms=5).driver_timeout_ms == 5


def test_an_empty_environment_leaves_the_defaults():
    assert from_environment({}) == ClientContext()
    assert from_environment({"AERON_CLIENT_NAME": ""}).client_name == ""


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("AERON_DRIVER_TIMEOUT", "10s"),
        ("AERON_CLIENT_IDLE_SLEEP_DURATION", "soon"),
        ("AERON_CLIENT_RESOURCE_LINGER_DURATION", "-1"),
        ("AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY", "yes"),
    ],
)
def test_a_variable_that_cannot_be_parsed_is_refused_by_name(variable, text):
    with pytest.raises(ConfigurationError, match=f"{variable}={text}"):
        from_environment({variable: text})


def test_the_directory_may_be_a_string():
    assert ClientContext(dir="/d").dir == Path("/d")
