"""The stored form of a client's channel, and the key of a recorded stream."""

import pytest

from windtunnel.driver.archive.control.retained_channel import boolean, retained, stream_key, text
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("aeron:ipc?term-length=64k", "aeron:ipc"),
        ("aeron:ipc", "aeron:ipc"),
        (
            "aeron:udp?term-length=64k|alias=a|endpoint=h:1|mtu=2k|session-id=7|ttl=3|linger=5",
            "aeron:udp?endpoint=h:1|session-id=7|ttl=3|alias=a",
        ),
        (
            "aeron-spy:aeron:udp?control=c:2|control-mode=dynamic|tags=4,5|own=1|rejoin=false",
            "aeron:udp?tags=4,5|control=c:2|control-mode=dynamic|rejoin=false",
        ),
        (
            "aeron:udp?endpoint=h:1|so-rcvbuf=131072|rcv-wnd=65537|so-sndbuf=2M",
            "aeron:udp?endpoint=h:1|so-sndbuf=2m|so-rcvbuf=128k|rcv-wnd=65537",
        ),
    ],
)
def test_retained_channel_parameters(given, kept):
    assert text(retained(uri.parse(given))) == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("tether=TRUE|rejoin=False|group=true", "tether=true|group=true|rejoin=false"),
        ("tether=yes|group=infer", "tether=false|group=false"),
        ("session-id=+007|ttl=0255|gtag=-08", "session-id=7|ttl=255|gtag=-8"),
        ("session-id=tag:4|stream-id=-3", "session-id=tag:4|stream-id=-3"),
        ("response-correlation-id=prototype", "response-correlation-id=prototype"),
        ("response-correlation-id=-1", "response-correlation-id=-1"),
        ("channel-rcv-ts-offset=reserved", "channel-rcv-ts-offset=reserved"),
        ("control=h:2|control-mode=manual", "control=h:2|control-mode=manual"),
    ],
)
def test_values_are_written_in_canonical_form(given, kept):
    assert text(retained(uri.parse(f"aeron:udp?{given}"))) == f"aeron:udp?{kept}"


@pytest.mark.parametrize(
    "given",
    [
        "control-mode=foo",
        "control-mode=Manual",
        "stream-id=foo",
        "stream-id=0x1F",
        "stream-id=2147483648",
        "session-id=tag:foo",
        "session-id=-2147483649",
        "ttl=256",
        "gtag=9223372036854775808",
        "response-correlation-id=foo",
        "response-correlation-id=-2",
        "response-correlation-id=reserved",
        "channel-snd-ts-offset=prototype",
    ],
)
def test_an_invalid_value_is_rejected(given):
    with pytest.raises(ConfigurationError, match=f"{given}: expected "):
        retained(uri.parse(f"aeron:udp?endpoint=h:1|{given}"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [("eos=TRUE", True), ("eos=no", False), ("alias=a", None)],
)
def test_boolean_parameters_are_parsed(given, expected):
    assert boolean(uri.parse(f"aeron:ipc?{given}"), "eos") is expected


def test_added_parameters_have_a_fixed_order():
    found = retained(
        uri.parse("aeron:udp?alias=a|endpoint=h:1"), mtu=1408, term_length=65_536, init_term_id=-3,
        term_id=5, term_offset=64, linger=7, eos="false", sparse=True, session_id=None,
    )  # fmt: skip
    assert str(found) == (
        "aeron:udp?endpoint=h:1|mtu=1408|term-length=64k|init-term-id=-3|term-id=5"
        "|term-offset=64|linger=7ns|alias=a|sparse=true|eos=false"
    )


@pytest.mark.parametrize(
    ("added", "written"),
    [
        ({"linger": 5_000_000_000}, "linger=5s"),
        ({"linger": 5_001_000_000}, "linger=5001ms"),
        ({"linger": 0}, "linger=0ns"),
        ({"term_length": 1 << 26}, "term-length=64m"),
        ({"mtu": 8_192}, "mtu=8k"),
        ({"term_offset": 4_096}, "term-offset=4096"),
    ],
)
def test_added_values_are_written_in_the_shortest_form(added, written):
    assert str(retained(uri.parse("aeron:ipc"), **added)) == f"aeron:ipc?{written}"


def test_an_invalid_size_is_rejected():
    with pytest.raises(ConfigurationError, match="rcv-wnd=much"):
        retained(uri.parse("aeron:udp?endpoint=h:1|rcv-wnd=much"))


def test_keys_are_equal_for_the_same_stream():
    def key(channel, stream_id=5):
        return stream_key(stream_id, uri.parse(channel))

    assert key("aeron:udp?endpoint=h:1|alias=a") == key("aeron:udp?mtu=2k|endpoint=h:1")
    for other in (
        "endpoint=h:2",
        "endpoint=h:1|session-id=3",
        "endpoint=h:1|tags=1",
        "control=h:1",
    ):
        assert key("aeron:udp?endpoint=h:1") != key("aeron:udp?" + other)
    assert key("aeron:ipc") != key("aeron:ipc", 6)
