"""Parsing and printing channel URIs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import uri
from windtunnel.driver.channel.uri import ChannelUri, InvalidChannelError

KEYS = st.text(st.characters(exclude_characters="=|\0", codec="utf-8"), min_size=1, max_size=12)
VALUES = st.text(st.characters(exclude_characters="|\0", codec="utf-8"), min_size=1, max_size=20)
URIS = st.builds(
    lambda media, params, is_spy: ChannelUri(media, tuple(params.items()), is_spy),
    st.sampled_from([uri.UDP, uri.IPC]),
    st.dictionaries(KEYS, VALUES, max_size=6),
    st.booleans(),
)


@given(URIS)
def test_parsing_inverts_printing(channel):
    assert uri.parse(str(channel)) == channel


@given(st.text(max_size=80))
def test_any_text_is_a_channel_or_an_error(text):
    for candidate in (text, "aeron:" + text, "aeron:udp?" + text):
        try:
            channel = uri.parse(candidate)
        except InvalidChannelError:
            continue
        assert uri.parse(str(channel)) == channel


def test_reads_media_parameters_and_spy():
    channel = uri.parse("aeron-spy:aeron:udp?endpoint=localhost:24325|term-length=64k")
    assert channel == ChannelUri(
        "udp", (("endpoint", "localhost:24325"), ("term-length", "64k")), is_spy=True
    )
    assert channel.get("endpoint") == "localhost:24325"


@pytest.mark.parametrize("text", ["aeron:ipc", "aeron:ipc?", "aeron:udp?", "aeron:ipc?alias=a b"])
def test_accepts(text):
    assert str(uri.parse(text)).startswith(text.rstrip("?"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected it to start with 'aeron:'"),
        ("aeron", "expected it to start with 'aeron:'"),
        ("AERON:udp?endpoint=a:1", "expected it to start with 'aeron:'"),
        ("aeron-spy:udp?endpoint=a:1", "expected it to start with 'aeron:'"),
        ("aeron-spy:aeron-spy:aeron:ipc", "expected it to start with 'aeron:'"),
        ("aeron:tcp?endpoint=a:1", "found 'tcp'"),
        ("aeron:ipcx", "found 'ipcx'"),
        ("aeron:udp", "expected '?' and parameters after 'udp'"),
        ("aeron:udp?endpoint", "expected '=' after key 'endpoint'"),
        ("aeron:udp?=a:1", "empty key before '=a:1'"),
        ("aeron:udp?mtu=|endpoint=a:1", "empty value of key 'mtu'"),
        ("aeron:udp?a=b||c=d", "expected '=' after key ''"),
        ("aeron:udp?a=\0b", "zero byte"),
    ],
)
def test_refuses(text, reason):
    with pytest.raises(InvalidChannelError) as failure:
        uri.parse(text)
    assert reason in str(failure.value)


@pytest.mark.parametrize("excess", [0, 1])
def test_length_is_limited(excess):
    text = "aeron:ipc?alias="
    text += "x" * (uri.LENGTH_MAX - len(text) + excess)
    if excess:
        with pytest.raises(InvalidChannelError, match="expected at most 4095"):
            uri.parse(text)
    else:
        assert len(str(uri.parse(text))) == uri.LENGTH_MAX


@pytest.mark.parametrize("text", ["aeron:udp?a=b|", "aeron:udp?a=b|c="])
def test_an_empty_end_is_ignored(text):
    assert uri.parse(text) == uri.parse("aeron:udp?a=b")


def test_the_last_of_equal_keys_counts():
    assert uri.parse("aeron:udp?mtu=1408|a=b|mtu=8k").params == (("mtu", "8k"), ("a", "b"))


def test_a_key_is_never_matched_by_prefix():
    channel = uri.parse("aeron:udp?mtuX=8k|a=b=c")
    assert channel.get("mtu") is None
    assert "mtu" not in channel
    assert channel.get("a") == "b=c"


def test_values_are_changed_in_place_and_removed():
    channel = uri.parse("aeron:udp?mtu=8k|endpoint=a:1")
    assert str(channel.with_param("mtu", 1408).with_param("eos", False)) == (
        "aeron:udp?mtu=1408|endpoint=a:1|eos=false"
    )
    assert channel.without("mtu", "none") == uri.parse("aeron:udp?endpoint=a:1")


@pytest.mark.parametrize("bad", [("", "x"), ("k", ""), ("k=", "x"), ("k", "a|b"), ("k", "\0")])
def test_a_value_that_cannot_be_printed_is_refused(bad):
    with pytest.raises(AssertionError):
        ChannelUri("udp", (bad,))


def test_typed_lookups_return_none_for_an_absent_key_and_reject_a_bad_value():
    channel = uri.parse("aeron:udp?s=2k|d=3us|b=true|i=-5|j=0x10")
    assert (channel.size("s"), channel.duration_ns("d"), channel.boolean("b")) == (2048, 3000, True)
    assert (channel.int32("i"), channel.int64("j")) == (-5, 16)
    for look_up in (channel.size, channel.duration_ns, channel.boolean, channel.int32):
        assert look_up("absent") is None
    for look_up in (channel.size, channel.duration_ns, channel.int32, channel.int64):
        with pytest.raises(ConfigurationError, match=r"^b=true: expected"):
            look_up("b")
