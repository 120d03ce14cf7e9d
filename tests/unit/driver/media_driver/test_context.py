"""All settings together: bounds, relations, and all faults reported at once."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base import idle
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel.subscription_parameters import Group
from windtunnel.driver.media_driver.context import SETTINGS, Context, from_environment
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)
from windtunnel.driver.settings.kinds import DURATION_MAX_NS, Duration, Number, Size


def test_all_invalid_settings_are_named_together():
    broken = Context(
        threading_mode="ALONE",
        mtu_length=1401,
        term_buffer_length=65_537,
        conductor_buffer_length=4096,
        sender_idle_strategy="nap",
        timer_interval_ns=0,
    )
    with pytest.raises(ConfigurationError) as caught:
        broken.conclude()
    for name in (
        "AERON_THREADING_MODE is ALONE",
        "AERON_MTU_LENGTH is 1401",
        "AERON_TERM_BUFFER_LENGTH is 65537",
        "AERON_CONDUCTOR_BUFFER_LENGTH is 4k",
        "AERON_SENDER_IDLE_STRATEGY is nap",
        "AERON_TIMER_INTERVAL is 0",
    ):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("mtu_length", 64, 32),
        ("mtu_length", 65_504, 65_536),
        ("mtu_length", 96, 97),
        ("term_buffer_length", 65_536, 32_768),
        ("term_buffer_length", 1 << 30, 1 << 31),
        ("ipc_term_buffer_length", 1 << 17, (1 << 17) + 4096),
        ("publication_window_length", 1 << 30, (1 << 30) + 1),
        ("counters_buffer_length", 1 << 20, (1 << 20) - 1),
        ("counters_buffer_length", 400 << 20, 430 << 20),
        ("error_buffer_length", 4 << 20, (4 << 20) - 1),
        ("loss_report_buffer_length", 1024, 1023),
        ("messages_per_send_max", 16, 17),
        ("receiver_io_vector_capacity", 16, 17),
        ("sender_io_vector_capacity", 1, 0),
        ("max_resend", 256, 257),
        ("max_resend", 1, 0),
        ("file_page_size", 4096, 2048),
        ("file_page_size", 8192, 12_288),
        ("nak_unicast_delay_ns", 1_000, 999),
        ("nak_unicast_retry_delay_ratio", 1 << 53, 1 << 54),
        ("nak_multicast_group_size", 1, 0),
        ("socket_multicast_ttl", 255, 256),
        ("client_liveness_timeout_ns", 10**9 + 1, 10**9),
        ("publication_unblock_timeout_ns", 10**10 + 1, 10**10),
        ("untethered_window_limit_timeout_ns", 10**9 + 1, 10**9),
        ("untethered_linger_timeout_ns", None, 10**9),
        ("untethered_resting_timeout_ns", 10**9 + 1, 10**9),
        ("conductor_buffer_length", (2 << 20) + 768, 2 << 20),
        ("clients_buffer_length", (2 << 20) + 128, (2 << 20) + 768),
        ("initial_window_length", 1408, 1407),
        ("stream_session_limit", 1, 0),
        ("resource_free_limit", 1, 0),
        ("sender_wildcard_ports", (20_000, 20_100), (20_100, 20_000)),
        ("receiver_wildcard_ports", (65_535, 65_535), (1, 65_536)),
        ("conductor_cpu_affinity", 255, 256),
        ("name_resolver", "default", "dns"),
        ("termination_validator", "allow", "maybe"),
        ("unicast_flow_control", "tagged", "least"),
        ("incoming_interceptors", ("loss", "loss"), ("gain",)),
        ("outgoing_interceptors", (), ("loss",)),
        ("shared_idle_init_args", "1-2-3us-4ms", "1-2-3us"),
        ("resolver_self_resolution_interval_ns", 1_000_000, 999_999),
    ],
)
def test_values_are_accepted_up_to_each_bound_and_rejected_beyond(name, good, bad):
    Context(**{name: good}).conclude()
    with pytest.raises(ConfigurationError, match=SETTINGS[name].variable):
        Context(**{name: bad}).conclude()


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"resolver_interface": "0.0.0.0:8050"}, "AERON_DRIVER_RESOLVER_NAME"),
        ({"name_resolver": "csv_table"}, "AERON_NAME_RESOLVER_INIT_ARGS"),
        ({"incoming_interceptors": ("fixed-loss",)}, "FIXED_LOSS_ARGS"),
    ],
)
def test_a_setting_that_requires_another_names_it(values, missing):
    with pytest.raises(ConfigurationError, match=f"requires .*{missing}"):
        Context(**values).conclude()


def test_an_invalid_value_is_reported_once():
    (fault,) = Context(client_liveness_timeout_ns=10).faults()
    assert fault == "AERON_CLIENT_LIVENESS_TIMEOUT is 10ns, but must be at least 1us"


def test_environment_variables_have_aerons_names(tmp_path):
    found = from_environment(
        {
            "AERON_DIR": str(tmp_path),
            "AERON_TERM_BUFFER_LENGTH": "64k",
            "AERON_MTU_LENGTH": "8K",
            "AERON_TIMER_INTERVAL": "100ms",
            "AERON_CLIENT_LIVENESS_TIMEOUT": "2s",
            "AERON_THREADING_MODE": "shared",
            "AERON_RELIABLE_STREAM": "false",
            "AERON_REJOIN_STREAM": "0",
            "AERON_SENDER_IDLE_STRATEGY": "noop",
            "AERON_DRIVER_TIMEOUT": "5000",
            "AERON_MAX_RESEND": "",
            "AERON_SOCKET_MULTICAST_TTL": "0x10",
            "AERON_UNICAST_FLOW_CONTROL_STRATEGY": "min",
            "AERON_UNTETHERED_LINGER_TIMEOUT": "-1",
            "PATH": "/bin",
        }
    )
    assert (found.dir, found.term_buffer_length, found.mtu_length) == (tmp_path, 65_536, 8192)
    assert (found.timer_interval_ns, found.client_liveness_timeout_ns) == (10**8, 2 * 10**9)
    assert (found.threading_mode, found.reliable_stream, found.max_resend) == ("SHARED", False, 16)
    assert (found.rejoin_stream, found.socket_multicast_ttl, found.driver_timeout_ms) == (
        False,
        16,
        5000,
    )
    assert (found.unicast_flow_control, found.untethered_linger_timeout_ns) == ("min", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("messages_per_send_max", 4),
        ("receiver_io_vector_capacity", 4),
        ("sender_io_vector_capacity", 4),
        ("resource_free_limit", 1),
    ],
)
def test_a_limit_set_to_the_default_of_aeron_differs_from_one_that_is_not_set(name, value):
    variable = SETTINGS[name].variable
    assert getattr(from_environment({}), name) is None
    assert getattr(from_environment({variable: ""}), name) is None
    assert getattr(from_environment({variable: str(value)}), name) == value
    assert "if not set" in SETTINGS[name].description


def test_more_messages_per_send_than_the_limit_are_rejected():
    with pytest.raises(ConfigurationError) as caught:
        from_environment({"AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND": "17"})
    assert str(caught.value) == (
        "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND is 17, but must be from 1 to 16"
    )


def test_all_invalid_settings_are_reported_with_name_value_and_bounds():
    with pytest.raises(ConfigurationError) as caught:
        from_environment(
            {
                "AERON_MTU_LENGTH": "8kk",
                "AERON_RELIABLE_STREAM": "maybe",
                "AERON_MAX_RESEND": "500",
                "AERON_TERM_BUFFER_LENGHT": "64k",
                "AERON_DRIVER_CPUSET_AFFINITY": "true",
                "AERON_TIMER_INTERVAL": "11s",
            }
        )
    text = str(caught.value)
    assert "AERON_MTU_LENGTH=8kk: expected a size" in text
    assert "from 64 to 65504" in text
    assert "AERON_RELIABLE_STREAM=maybe: expected true or false" in text
    assert "AERON_MAX_RESEND is 500, but must be from 1 to 256" in text
    assert (
        "AERON_TERM_BUFFER_LENGHT is not an Aeron setting; did you mean AERON_TERM_BUFFER_LENGTH?"
        in text
    )
    assert "AERON_DRIVER_CPUSET_AFFINITY is true" in text
    assert (
        "AERON_CLIENT_LIVENESS_TIMEOUT is 10s, but must be above AERON_TIMER_INTERVAL is 11s"
        in text
    )


@pytest.mark.parametrize("text", ["k", "1.5k", "-1", "1t", "0x10", "1 k"])
def test_invalid_sizes_are_rejected(text):
    with pytest.raises(ConfigurationError, match=r"AERON_MTU_LENGTH=.*expected a size"):
        from_environment({"AERON_MTU_LENGTH": text})


@pytest.mark.parametrize("text", ["ms", "1.5s", "-1ns", "1h"])
def test_invalid_durations_are_rejected(text):
    with pytest.raises(ConfigurationError, match=r"AERON_TIMER_INTERVAL=.*expected a duration"):
        from_environment({"AERON_TIMER_INTERVAL": text})


def test_the_settings_of_aerons_java_tests_are_accepted():
    """Settings in the form in which Aeron's system tests pass them to the C driver."""
    found = from_environment(
        {
            "AERON_CLIENT_LIVENESS_TIMEOUT": "10000000000",
            "AERON_DRIVER_TERMINATION_VALIDATOR": "allow",
            "AERON_PUBLICATION_LINGER_TIMEOUT": "0",
            "AERON_NAK_UNICAST_DELAY": "0",
            "AERON_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY": "sleep-ns",
            "AERON_SHAREDNETWORK_IDLE_STRATEGY": "yield",
            "AERON_SHARED_IDLE_STRATEGY": "spin",
            "AERON_RECEIVER_GROUP_TAG": "-10",
            "AERON_FLOW_CONTROL_GROUP_TAG": "-1",
            "AERON_FLOW_CONTROL_GROUP_MIN_SIZE": "0",
            "AERON_PRINT_CONFIGURATION": "true",
            "AERON_DRIVER_RESOLVER_NAME": "A",
            "AERON_DRIVER_RESOLVER_INTERFACE": "0.0.0.0:8050",
            "AERON_NAME_RESOLVER_SUPPLIER": "driver",
            "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR": "just:wrong,localhost:8050",
            "AERON_SOCKET_SO_SNDBUF": "0",
            "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD": "7200000000000",
            "AERON_SENDER_WILDCARD_PORT_RANGE": "20700 20709",
            "AERON_ENABLE_EXPERIMENTAL_FEATURES": "false",
            "AERON_DRIVER_STREAM_SESSION_LIMIT": "2147483647",
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER": "aeron_min_flow_control_strategy_supplier",
            "AERON_UNICAST_FLOWCONTROL_SUPPLIER": "aeron_unicast_flow_control_strategy_supplier",
            "AERON_EVENT_LOG": "admin",
            "AERON_EVENT_LOG_DISABLE": "",
            "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "loss,multi-gap-loss",
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.1|seed=-3|recv-msg-mask=0x2",
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS": (
                "term-id=-5|gap-radix=128|gap-length=64|total-gaps=10"
            ),
            "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS": (
                "term-id=5|term-offset=102|length=1000"
            ),
            "AERON_TRANSPORT_SECURITY_CONF_DIR": "/somewhere",
        }
    )
    assert found.allows_termination(b"")
    assert (found.publication_linger_timeout_ns, found.nak_unicast_delay_ns) == (0, 1_000)
    assert (found.receiver_group_tag, found.flow_control_group_tag) == (-10, -1)
    assert (found.multicast_flow_control, found.unicast_flow_control) == ("min", "max")
    assert found.sender_wildcard_ports == (20_700, 20_709)
    assert found.incoming_interceptors == ("loss", "multi-gap-loss")
    assert found.random_loss == RandomLoss(0.1, (1 << 64) - 3, 2)
    assert found.multi_gap_loss == MultiGapLoss(-5, 128, 64, 10)
    assert found.fixed_loss == FixedLoss(5, 102, 1000)
    assert found.idle_of("shared")[0].mode == idle.SPIN
    assert found.idle_of("shared_network")[0].mode == idle.YIELD
    assert found.receiver_group_consideration is Group.INFER


def test_a_termination_request_is_denied_by_default():
    assert not Context().allows_termination(b"please")


def test_each_variable_belongs_to_one_setting_and_every_default_may_be_written():
    variables = [kind.variable for kind in SETTINGS.values()]
    assert len(set(variables)) == len(variables)
    assert all(re.fullmatch(r"(AERON|WINDTUNNEL)_[A-Z_]+", variable) for variable in variables)
    defaults = Context()
    texts = {kind.variable: kind.write(getattr(defaults, name)) for name, kind in SETTINGS.items()}
    read = from_environment(texts)
    for name in SETTINGS:
        assert getattr(read, name) == getattr(defaults, name), name


NUMBERS = sorted(name for name, kind in SETTINGS.items() if isinstance(kind, Number))


def fault_of(variable, text):
    """Return (settings, error) of reading one variable; one of them is None."""
    try:
        return from_environment({variable: text}), None
    except ConfigurationError as error:
        return None, str(error)


@given(st.sampled_from(NUMBERS), st.integers(-(1 << 65), 1 << 65))
def test_any_number_is_accepted_unchanged_or_rejected_by_name(name, value):
    kind = SETTINGS[name]
    text = kind.write(value) if isinstance(kind, Size | Duration) and value >= 0 else str(value)
    found, fault = fault_of(kind.variable, text)
    if found is None:
        assert kind.variable in fault
        return
    expected = min(value, DURATION_MAX_NS) if isinstance(kind, Duration) else value
    taken = getattr(found, name)
    assert taken == expected or (value in (0, -1) and taken in (None, 1_000))


@given(st.sampled_from(sorted(SETTINGS)), st.text(max_size=40))
def test_any_text_is_parsed_or_rejected(name, text):
    variable = SETTINGS[name].variable
    found, fault = fault_of(variable, text)
    assert found is not None or variable in fault


def test_the_directory_may_be_given_as_text(tmp_path):
    assert Context(dir=str(tmp_path)).dir == tmp_path
