"""The parts of a channel that the harness reads."""

import pytest

from windtunnel.driver.channel import uri_param
from windtunnel.harness.scenario.schema.channel import (
    PARAMETERS,
    check_parameters,
    fill_in,
    parse_channel,
    placeholders,
    read_all,
)

FULL = (
    "aeron:udp?endpoint=${b}:24325|term-length=64k|mtu=8k|init-term-id=-3|term-id=2|term-offset=96"
    "|reliable=false|rcv-wnd=16k"
)


def channel(more):
    return parse_channel(f"aeron:udp?endpoint=b:1|{more}")


def test_reads_every_part():
    parsed = parse_channel(FULL)
    assert (parsed.endpoint_host, parsed.endpoint_port) == ("${b}", 24325)
    assert (parsed.term_length, parsed.mtu) == (65536, 8192)
    assert parsed.initial_term_id == -3
    assert parsed.initial_position == 5 * 65536 + 96
    assert not parsed.reliable
    assert parsed.receiver_window_bytes == 16384


def test_has_defaults_for_missing_parameters():
    parsed = parse_channel("aeron:udp?endpoint=10.0.0.1:4000")
    assert (parsed.term_length, parsed.mtu) == (16 << 20, 1408)
    assert parsed.reliable
    assert (parsed.initial_term_id, parsed.initial_position) == (None, 0)
    assert parsed.receiver_window_bytes is None


def test_positions_increase_when_the_term_id_wraps():
    parsed = channel("term-length=64k|init-term-id=2147483647|term-id=-2147483648|term-offset=0")
    assert parsed.initial_position == 65536


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aeron:ipc", "starts with aeron:udp"),
        ("aeron:udp?endpoint", "name=value"),
        ("aeron:udp?mtu=1408|mtu=1408", "twice"),
        ("aeron:udp?endpoint=b:1|", "name=value"),
    ],
)
def test_refuses_text_that_is_not_a_channel(text, words):
    with pytest.raises(ValueError, match=words):
        parse_channel(text)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ("term-length=65537", "term_length"),
        ("term-length=32k", "term_length"),
        ("term-length=2g", "term_length"),
        ("term-length=many", "term_length"),
        ("mtu=1400", "mtu"),
        ("mtu=32", "mtu"),
        ("mtu=128k", "mtu"),
        ("reliable=no", "reliable"),
        ("init-term-id=2147483648", "initial_term_id"),
        ("init-term-id=1|term-id=1", "initial_position"),
        ("init-term-id=1|term-id=0|term-offset=0", "initial_position"),
        ("init-term-id=1|term-id=1|term-offset=33", "initial_position"),
    ],
)
def test_refuses_impossible_parts(more, part):
    parsed = channel(more)
    with pytest.raises(ValueError, match=r"expected|together|before"):
        getattr(parsed, part)


@pytest.mark.parametrize("endpoint", ["b", "b:", ":1", "b:0", "b:65536", "b:http"])
def test_refuses_an_endpoint_without_host_and_port(endpoint):
    parsed = parse_channel(f"aeron:udp?endpoint={endpoint}")
    with pytest.raises(ValueError, match="HOST:PORT"):
        assert parsed.endpoint_port


def test_replaces_hosts_by_addresses():
    assert placeholders(FULL) == ["b"]
    filled = fill_in(FULL, {"b": "10.64.0.19"})
    assert parse_channel(filled).endpoint_host == "10.64.0.19"


@pytest.mark.parametrize(
    ("text", "delay_ns"), [("500", 500), ("7ns", 7), ("10us", 10_000), ("2ms", 2_000_000)]
)
def test_reads_the_nak_delay(text, delay_ns):
    assert parse_channel(f"aeron:udp?endpoint=h:1|nak-delay={text}").nak_delay_ns == delay_ns


def test_has_no_nak_delay_by_default_and_refuses_an_invalid_one():
    assert parse_channel("aeron:udp?endpoint=h:1").nak_delay_ns is None
    with pytest.raises(ValueError, match="nak-delay=1h: expected a number followed by"):
        _ = parse_channel("aeron:udp?endpoint=h:1|nak-delay=1h").nak_delay_ns


@pytest.mark.parametrize(
    ("text", "output"), [("", True), ("|eos=true", True), ("|eos=false", False)]
)
def test_reads_whether_a_publication_signals_its_end(text, output):
    assert parse_channel(f"aeron:udp?endpoint=h:1{text}").signals_end is output


@pytest.mark.parametrize(("text", "output"), [("", None), ("=true", True), ("=false", False)])
def test_reads_whether_a_sender_retransmits_many_ranges(text, output):
    name = f"|windtunnel.retransmit-ranges{text}" if text else ""
    assert parse_channel(f"aeron:udp?endpoint=h:1{name}").retransmit_ranges is output


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("term-lenght", "found 'term-lenght': did you mean term-length"),
        ("nak_delay", "found 'nak_delay': did you mean nak-delay?"),
        ("Endpoint", "found 'Endpoint': did you mean endpoint?"),
        ("colour", "found 'colour': the parameters are endpoint, interface, "),
    ],
)
def test_refuses_a_parameter_that_aeron_does_not_have(name, nearest):
    with pytest.raises(ValueError, match="expected a channel parameter") as raised:
        check_parameters(channel(f"{name}=1m"))
    assert nearest in str(raised.value)


@pytest.mark.parametrize("name", PARAMETERS)
def test_accepts_each_parameter_of_aeron(name):
    check_parameters(parse_channel(f"aeron:udp?{name}=1"))


def test_has_each_parameter_that_the_driver_has():
    """The harness has its own table of names, which must equal that of the driver."""
    named = {value for name, value in vars(uri_param).items() if name.isupper()}
    assert {value for value in named if isinstance(value, str)} == set(PARAMETERS)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("1MiB", "; in a channel, write 1m"), ("64KB", "; in a channel, write 64k"), ("1mx", "")],
)
def test_a_size_with_a_unit_of_scenarios_is_corrected(text, suggestion):
    with pytest.raises(ValueError, match="expected a number of bytes") as raised:
        read_all(parse_channel(f"aeron:udp?endpoint=localhost:1|term-length={text}"))
    assert str(raised.value).endswith(f"bytes{suggestion}")
