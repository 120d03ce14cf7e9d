"""Parameters of a subscription: defaults, every bound, and rules between parameters."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import subscription_parameters, uri
from windtunnel.driver.channel.subscription_parameters import Group, SubscriptionDefaults

DEFAULTS = SubscriptionDefaults()
SECOND_NS = 1_000_000_000


def parse(params, defaults=DEFAULTS, media="udp", prefix=""):
    return subscription_parameters.parse(uri.parse(f"{prefix}aeron:{media}?{params}"), defaults)


def test_defaults_are_those_of_the_reference_driver():
    found = parse("endpoint=a:1")
    assert (found.is_reliable, found.is_tethered, found.is_rejoin, found.is_sparse) == (True,) * 4
    assert (found.group, found.group_tag, found.session_id) == (Group.INFER, None, None)
    assert (found.initial_window_length, found.congestion_control) == (131072, "static")
    assert found.untethered_window_limit_timeout_ns == 5 * SECOND_NS
    assert found.untethered_linger_timeout_ns == 5 * SECOND_NS
    assert found.untethered_resting_timeout_ns == 10 * SECOND_NS
    assert (found.nak_delay_ns, found.is_response, found.response_endpoint) == (None, False, None)


@pytest.mark.parametrize(
    ("params", "setting", "expected"),
    [
        ("", "default", "static"),
        ("|cc=cubic", "default", "cubic"),
        ("|cc=static", "cubic", "cubic"),
        ("|cc=cubic", "static", "static"),
    ],
)
def test_a_congestion_control_in_the_settings_replaces_that_of_channels(params, setting, expected):
    defaults = SubscriptionDefaults(congestion_control=setting)
    assert parse(f"endpoint=a:1{params}", defaults).congestion_control == expected


@pytest.mark.parametrize(
    ("params", "default", "expected"),
    [
        ("", False, False),
        ("", True, True),
        ("|windtunnel.nak-all-gaps=true", False, True),
        ("|windtunnel.nak-all-gaps=false", True, False),
    ],
)
def test_naks_for_all_gaps_are_off_by_default(params, default, expected):
    defaults = DEFAULTS._replace(is_nak_all_gaps=default)
    assert parse(f"endpoint=a:1{params}", defaults).is_nak_all_gaps is expected


@pytest.mark.parametrize(
    ("params", "default", "expected"),
    [
        ("", (0, 0), (0, 0, False)),
        ("", (4, 0), (4, 0, True)),
        ("", (0, 9), (0, 9, True)),
        ("|windtunnel.gap-fill-datagrams=4", (0, 0), (4, 0, True)),
        ("|windtunnel.gap-fill-delay=5ms", (0, 0), (0, 5_000_000, True)),
        ("|windtunnel.gap-fill-delay=1us|windtunnel.gap-fill-datagrams=0", (4, 9), (0, 1000, True)),
        ("|windtunnel.gap-fill-delay=0|windtunnel.gap-fill-datagrams=0", (4, 9), (0, 0, False)),
    ],
)
def test_a_gap_is_filled_at_once_by_default(params, default, expected):
    datagrams, delay_ns = default
    defaults = DEFAULTS._replace(gap_fill_datagrams=datagrams, gap_fill_delay_ns=delay_ns)
    found = parse(f"endpoint=a:1{params}", defaults)
    assert (found.gap_fill_datagrams, found.gap_fill_delay_ns, found.is_fill_delayed) == expected


@pytest.mark.parametrize("value", ["-1", "4k", "2147483648"])
def test_a_number_of_datagrams_is_a_number(value):
    with pytest.raises(ConfigurationError):
        parse(f"endpoint=a:1|windtunnel.gap-fill-datagrams={value}")


def test_every_parameter_is_read():
    found = parse(
        "reliable=false|tether=false|rejoin=false|sparse=false|group=true|gtag=-1|session-id=7"
        "|rcv-wnd=64k|cc=cubic|nak-delay=5us|control-mode=response|response-endpoint=b:2"
        "|untethered-window-limit-timeout=1s|untethered-linger-timeout=2s"
        "|untethered-resting-timeout=3s|channel-rcv-ts-offset=0|media-rcv-ts-offset=reserved"
    )
    flags = (found.is_reliable, found.is_tethered, found.is_rejoin, found.is_sparse)
    assert flags == (False,) * 4
    assert (found.group, found.group_tag, found.session_id) == (Group.TRUE, -1, 7)
    assert (found.initial_window_length, found.congestion_control) == (65536, "cubic")
    assert (found.nak_delay_ns, found.is_response, found.response_endpoint) == (5000, True, "b:2")
    assert found.untethered_window_limit_timeout_ns == SECOND_NS
    assert found.untethered_linger_timeout_ns == 2 * SECOND_NS
    assert found.untethered_resting_timeout_ns == 3 * SECOND_NS
    assert found.channel_receive_timestamp_offset == 0
    assert found.media_receive_timestamp_offset == -8


@pytest.mark.parametrize(
    ("given", "expected_ns"),
    [
        ("untethered-linger-timeout=0", 5 * SECOND_NS),
        ("untethered-linger-timeout=1ns", 1),
        ("untethered-window-limit-timeout=3s|untethered-linger-timeout=0s", 3 * SECOND_NS),
    ],
)
def test_an_untethered_linger_of_0_is_the_default(given, expected_ns):
    assert parse(f"endpoint=a:1|{given}").untethered_linger_timeout_ns == expected_ns


@pytest.mark.parametrize(
    ("accepted", "refused", "reason"),
    [
        (
            "rcv-wnd=128k",
            "rcv-wnd=131073",
            "rcv-wnd=131073: expected at most 131072 bytes, the size",
        ),
        (
            "so-rcvbuf=1m|rcv-wnd=1m",
            "so-rcvbuf=1m|rcv-wnd=1048577",
            "expected at most 1048576 bytes, the size",
        ),
        ("rcv-wnd=1", "rcv-wnd=0", "rcv-wnd=0: expected at least 1"),
        ("reliable=true", "reliable=no", "reliable=no: expected true or false"),
        ("group=infer", "group=maybe", "group=maybe: expected true, false or infer"),
        ("cc=static", "cc=reno", "cc=reno: expected static or cubic"),
        ("gtag=9223372036854775807", "gtag=9223372036854775808", "expected at most"),
        ("session-id=-2147483648", "session-id=-2147483649", "expected at least"),
        ("nak-delay=0", "nak-delay=-1", "nak-delay=-1: expected a duration"),
        ("tether=false", "tether=", None),
    ],
)
def test_each_bound_and_the_nearest_invalid_value(accepted, refused, reason):
    parse(accepted)
    if reason is None:
        assert parse(refused) == parse("a=b")
        return
    with pytest.raises(ConfigurationError) as failure:
        parse(refused)
    assert reason in str(failure.value)


def test_window_fits_the_receive_buffer():
    defaults = DEFAULTS._replace(socket_rcvbuf_length=0, system_rcvbuf_length=200_000)
    assert parse("rcv-wnd=200000", defaults).initial_window_length == 200_000
    with pytest.raises(ConfigurationError, match="expected at most 200000 bytes, the size"):
        parse("rcv-wnd=200001", defaults)
    with pytest.raises(ConfigurationError, match=r"^rcv-wnd=131072: expected at most 4096 bytes"):
        parse("so-rcvbuf=4k", DEFAULTS)
    assert parse("so-rcvbuf=4k", media="ipc").initial_window_length == 131072


@pytest.mark.parametrize(
    ("params", "window_length"), [("so-rcvbuf=32k", 131072), ("rcv-wnd=100m", 100 << 20)]
)
def test_a_spy_has_no_receive_buffer_for_its_window(params, window_length):
    with pytest.raises(ConfigurationError, match="the size of the socket's receive buffer"):
        parse(f"endpoint=a:1|{params}")
    found = parse(f"endpoint=a:1|{params}", prefix="aeron-spy:")
    assert found.initial_window_length == window_length


@pytest.mark.parametrize(
    ("param", "unicast", "multicast"),
    [("group=true", True, True), ("group=false", False, False), ("group=infer", False, True)],
)
def test_group(param, unicast, multicast):
    found = parse(param)
    assert found.is_group(is_multicast=False) == unicast
    assert found.is_group(is_multicast=True) == multicast


@pytest.mark.parametrize("param", ["reliable=false", "rejoin=false"])
def test_reliability_and_rejoin_must_be_equal(param):
    existing = parse("endpoint=a:1")
    parse("reliable=true|rejoin=true|tether=false").refuse_conflict(existing, "one", "two")
    text = f"^option conflicts with existing subscription: {param} existingChannel=two channel=one$"
    with pytest.raises(ConfigurationError, match=text):
        parse(param).refuse_conflict(existing, "one", "two")
