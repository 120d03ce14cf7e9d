"""Parameters of a publication: defaults, every bound, and rules between parameters."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import publication_parameters, uri
from windtunnel.driver.channel.publication_parameters import (
    InitialPosition,
    PublicationDefaults,
    TaggedPublication,
)

DEFAULTS = PublicationDefaults()
SECOND_NS = 1_000_000_000


def parse(params, defaults=DEFAULTS, find_tagged=lambda tag: None, media="udp"):
    channel = uri.parse(f"aeron:{media}?{params}")
    return publication_parameters.parse(channel, defaults, find_tagged)


def test_defaults_are_those_of_the_reference_driver():
    found = parse("endpoint=a:1")
    assert (found.term_length, found.mtu_length, found.window_length) == (16 << 20, 1408, 8 << 20)
    assert (found.linger_ns, found.max_resend) == (5 * SECOND_NS, 16)
    assert (found.is_sparse, found.signal_eos, found.spies_simulate_connection) == (
        True,
        True,
        False,
    )
    assert found.untethered_window_limit_timeout_ns == 5 * SECOND_NS
    assert found.untethered_linger_timeout_ns == 5 * SECOND_NS
    assert found.untethered_resting_timeout_ns == 10 * SECOND_NS
    assert (found.has_retransmit_ranges, found.linger_max_ns) == (False, 60 * SECOND_NS)
    assert found.session_id is None
    assert found.initial_position is None
    assert found.flow_control is None
    assert found.response_correlation_id == -1
    assert parse("", media="ipc").term_length == 64 << 20


def test_every_parameter_is_read():
    found = parse(
        "term-length=128k|mtu=8k|pub-wnd=32k|linger=3s|sparse=false|eos=false|ssc=true"
        "|max-resend=20|session-id=-7|init-term-id=-3|term-id=2|term-offset=64|tags=4,5"
        "|response-correlation-id=9|control-mode=response|channel-snd-ts-offset=reserved"
        "|untethered-window-limit-timeout=1s|untethered-resting-timeout=2s|fc=min,t:3s"
        "|windtunnel.retransmit-ranges=true|windtunnel.linger-max=9s"
    )
    assert (found.has_retransmit_ranges, found.linger_max_ns) == (True, 9 * SECOND_NS)
    assert (found.term_length, found.mtu_length, found.window_length) == (131072, 8192, 32768)
    assert (found.linger_ns, found.max_resend, found.session_id) == (3 * SECOND_NS, 20, -7)
    assert (found.is_sparse, found.signal_eos, found.spies_simulate_connection) == (
        False,
        False,
        True,
    )
    assert found.initial_position == InitialPosition(-3, 2, 64)
    assert (found.response_correlation_id, found.is_response, found.entity_tag) == (9, True, 5)
    assert found.send_timestamp_offset == -8
    assert found.untethered_window_limit_timeout_ns == SECOND_NS
    assert found.untethered_linger_timeout_ns == SECOND_NS
    assert found.untethered_resting_timeout_ns == 2 * SECOND_NS
    assert found.flow_control.receiver_timeout_ns == 3 * SECOND_NS


@pytest.mark.parametrize(
    ("given", "expected_ns"),
    [
        ("untethered-linger-timeout=0", 5 * SECOND_NS),
        ("untethered-linger-timeout=1ns", 1),
        ("untethered-window-limit-timeout=3s|untethered-linger-timeout=0s", 3 * SECOND_NS),
    ],
)
def test_an_untethered_linger_of_0_is_the_default(given, expected_ns):
    assert parse(given).untethered_linger_timeout_ns == expected_ns


@pytest.mark.parametrize(
    ("accepted", "refused", "reason"),
    [
        ("mtu=64", "mtu=63", "mtu=63: expected at least 64"),
        ("mtu=64", "mtu=32", "mtu=32: expected at least 64"),
        ("mtu=65504", "mtu=65505", "expected at most 65504"),
        ("mtu=1408", "mtu=1409", "expected a multiple of 32"),
        ("term-length=64k", "term-length=65535", "expected at least 65536"),
        ("term-length=1g", "term-length=1073741825", "expected at most 1073741824"),
        ("term-length=128k", "term-length=129k", "expected a power of two"),
        ("max-resend=1", "max-resend=0", "expected at least 1"),
        ("max-resend=256", "max-resend=257", "expected at most 256"),
        ("session-id=2147483647", "session-id=2147483648", "expected at most 2147483647"),
        ("session-id=-2147483648", "session-id=-2147483649", "expected at least -2147483648"),
        ("session-id=1", "session-id=one", "session-id=one: expected an integer"),
        ("linger=0", "linger=-1", "linger=-1: expected a duration"),
        (
            "windtunnel.retransmit-ranges=true",
            "windtunnel.retransmit-ranges=1",
            "windtunnel.retransmit-ranges=1: expected true or false",
        ),
        ("windtunnel.linger-max=0", "windtunnel.linger-max=-1", "expected a duration"),
        ("eos=true", "eos=1", "eos=1: expected true or false"),
        ("response-correlation-id=-1", "response-correlation-id=-2", "greater than or equal to -1"),
        ("channel-snd-ts-offset=0", "channel-snd-ts-offset=-1", "expected at least 0"),
        ("term-length=64k|pub-wnd=32k", "term-length=64k|pub-wnd=32769", "at most 32768"),
        ("mtu=8k|pub-wnd=8k", "mtu=8k|pub-wnd=8191", "expected at least 8192"),
    ],
)
def test_each_bound_and_the_nearest_invalid_value(accepted, refused, reason):
    parse(accepted)
    with pytest.raises(ConfigurationError) as failure:
        parse(refused)
    assert reason in str(failure.value)


START = "term-length=64k|init-term-id={}|term-id={}|term-offset={}"


@pytest.mark.parametrize(
    "start", [(0, 0, 0), (0, 0, 65536), (7, 8, 64), (2147483647, -2147483648, 32), (-3, 5, 0)]
)
def test_initial_position(start):
    assert parse(START.format(*start)).initial_position == InitialPosition(*start)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ((0, 0, 65537), "term-offset=65537: expected at most 65536"),
        ((0, 0, 33), "term-offset=33: expected a multiple of 32"),
        ((0, 0, -32), "term-offset=-32: expected at least 0"),
        ((8, 7, 0), "term-id=7: expected init-term-id=8 or a later term id"),
        ((-2147483648, 2147483647, 0), "expected init-term-id=-2147483648 or a later"),
        ((2147483648, 0, 0), "init-term-id=2147483648: expected at most"),
    ],
)
def test_no_initial_position(start, reason):
    with pytest.raises(ConfigurationError) as failure:
        parse(START.format(*start))
    assert reason in str(failure.value)


@pytest.mark.parametrize("missing", ["init-term-id", "term-id", "term-offset"])
def test_an_initial_position_is_given_whole(missing):
    params = dict.fromkeys(["init-term-id", "term-id", "term-offset"], "0")
    del params[missing]
    with pytest.raises(ConfigurationError, match=f"also requires {missing}$"):
        parse("|".join(f"{key}={value}" for key, value in params.items()))


@pytest.mark.parametrize("excess", [0, 32])
def test_a_datagram_fits_the_send_buffer(excess):
    for params, defaults in (
        (f"so-sndbuf=4096|mtu={4096 + excess}", DEFAULTS),
        (f"mtu={4096 + excess}", DEFAULTS._replace(socket_sndbuf_length=4096)),
        (f"mtu={4096 + excess}", DEFAULTS._replace(system_sndbuf_length=4096)),
    ):
        if excess:
            with pytest.raises(ConfigurationError, match="expected at most 4096 bytes, the size"):
                parse(params, defaults)
        else:
            assert parse(params, defaults).mtu_length == 4096
        assert parse(params, defaults, media="ipc").mtu_length == 4096 + excess


def test_window_follows_setting_up_to_half_a_term():
    for setting, window in ((0, 32768), (4096, 4096), (1 << 20, 32768)):
        defaults = DEFAULTS._replace(window_length=setting)
        assert parse("term-length=64k", defaults).window_length == window
    defaults = DEFAULTS._replace(ipc_window_length=8192)
    assert parse("term-length=64k", defaults, media="ipc").window_length == 8192


def test_a_tag_copies_session_and_lengths():
    tagged = {5: TaggedPublication(session_id=-9, mtu_length=4096, term_length=1 << 17)}.get
    found = parse("session-id=tag:5", find_tagged=tagged)
    assert (found.session_id, found.mtu_length, found.term_length) == (-9, 4096, 1 << 17)
    assert parse("session-id=tag:5|mtu=4k|term-length=128k", find_tagged=tagged).mtu_length == 4096
    for params, reason in (
        ("session-id=tag:6", "no publication has that tag"),
        ("session-id=tag:", "expected an integer"),
        ("session-id=tag:5|mtu=8k", "^mtu=8k: the publication selected by session-id=tag:5 has 4k"),
        ("session-id=tag:5|term-length=64k", "^term-length=64k: .* has 128k"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            parse(params, find_tagged=tagged)


def test_prototype_is_a_response_publication_template():
    assert parse("response-correlation-id=prototype").response_correlation_id == -2


@pytest.mark.parametrize(
    "params",
    ["mtu=2048", "term-length=128k", "session-id=4",
     "init-term-id=1|term-id=1|term-offset=0", "init-term-id=0|term-id=1|term-offset=0",
     "init-term-id=0|term-id=0|term-offset=32"],
)  # fmt: skip
def test_only_explicit_parameters_can_conflict(params):
    existing = parse("term-length=64k|init-term-id=0|term-id=0|term-offset=0")
    parse("endpoint=a:1").refuse_conflict(existing, session_id=3)
    same = "mtu=1408|term-length=64k|session-id=3|init-term-id=0|term-id=0|term-offset=0"
    parse(same).refuse_conflict(existing, session_id=3)
    with pytest.raises(ConfigurationError, match="the existing publication has"):
        parse(params).refuse_conflict(existing, session_id=3)


def test_only_network_publications_compare_whether_spies_simulate_a_connection():
    existing = parse("ssc=false")
    other = parse("ssc=true")
    other.refuse_conflict(existing, session_id=3)
    parse("endpoint=a:1").refuse_spies_conflict(existing)
    with pytest.raises(ConfigurationError, match=r"^ssc=true: the existing publication has false$"):
        other.refuse_spies_conflict(existing)


@pytest.mark.parametrize(("media", "params"), [("udp", "endpoint=a:1|"), ("ipc", "")])
def test_flow_control_is_checked_also_where_it_has_no_effect(media, params):
    assert parse(f"{params}fc=min", media=media).flow_control.strategy == "min"
    with pytest.raises(ConfigurationError, match=r"^fc=foo: expected max, min or tagged"):
        parse(f"{params}fc=foo", media=media)
