"""Addresses, canonical forms, tags, and rules for publications, subscriptions and destinations."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.driver.channel.machine import LAN, LAN_V6, LOOPBACK, WAN, Machine
from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.channel import admission, udp_channel, uri
from windtunnel.driver.channel.resolver import UnknownHostError
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.channel.udp_channel import ControlMode
from windtunnel.driver.channel.uri import InvalidChannelError

UNIQUE = 7


def resolve(params, *interfaces):
    return udp_channel.resolve(uri.parse(f"aeron:udp?{params}"), Machine(*interfaces), UNIQUE)


@pytest.mark.parametrize(
    ("params", "form"),
    [
        ("endpoint=10.9.9.9:40123", "UDP-0.0.0.0:0-10.9.9.9:40123"),
        ("endpoint=localhost:24325", "UDP-0.0.0.0:0-localhost:24325"),
        ("endpoint=[fd00::99]:40123", "UDP-[::]:0-[fd00::99]:40123"),
        ("endpoint=far6:40123", "UDP-[::]:0-far6:40123"),
        ("endpoint=far:40123|interface=10.0.0.0/24", "UDP-10.0.0.7:0-far:40123"),
        ("endpoint=far:40123|interface=10.0.0.0:5000/24", "UDP-10.0.0.7:5000-far:40123"),
        ("endpoint=far:40123|interface=0.0.0.0:5000", "UDP-0.0.0.0:5000-far:40123"),
        ("endpoint=far:40123|interface={eth1}:5000", "UDP-192.168.4.9:5000-far:40123"),
        ("endpoint=far:40123|control=localhost:40124", "UDP-localhost:40124-far:40123"),
        ("control=localhost:24340|control-mode=dynamic", "UDP-localhost:24340-0.0.0.0:0"),
        ("endpoint=224.0.1.1:40456", "UDP-10.0.0.7:0-224.0.1.1:40456"),
        ("endpoint=224.0.1.1:40456|interface=192.168.4.9", "UDP-192.168.4.9:0-224.0.1.1:40456"),
        ("endpoint=[ff02::1]:40456|interface=[fd00::]/64", "UDP-[fd00::7]:0-[ff02::1]:40456"),
        ("control-mode=manual", "UDP-0.0.0.0:0-0.0.0.0:0-7"),
        ("control-mode=manual|interface=[fd00::7]", "UDP-[fd00::7]:0-[::]:0-7"),
        ("control-mode=manual|interface=[fd00::]:5/64", "UDP-[fd00::7]:5-[::]:0-7"),
        ("control-mode=manual|interface=[::]", "UDP-[::]:0-[::]:0-7"),
        ("control-mode=manual|interface=10.0.0.0/24", "UDP-10.0.0.7:0-0.0.0.0:0-7"),
        ("control-mode=manual|interface={eth1}", "UDP-192.168.4.9:0-0.0.0.0:0-7"),
        ("endpoint=localhost:0", "UDP-0.0.0.0:0-localhost:0-7"),
        ("endpoint=localhost:0|tags=5", "UDP-0.0.0.0:0-localhost:0#5"),
        ("endpoint=localhost:1|tags=5", "UDP-0.0.0.0:0-localhost:1"),
        ("control=localhost:0|control-mode=dynamic", "UDP-localhost:0-0.0.0.0:0-7"),
        ("control=far:1|endpoint=far:2|interface=10.0.0.0/24", "UDP-far:1-far:2"),
        ("control=far:1|endpoint=far:2|interface=[fd00::7]", "UDP-far:1-far:2"),
        ("tags=5,6", "UDP-0.0.0.0:0-0.0.0.0:0#5"),
    ],
)
def test_canonical_form(params, form):
    assert resolve(params).canonical_form == form


def test_unicast_addresses():
    channel = resolve("endpoint=far:40123")
    assert channel.local_data == channel.local_control == SocketAddress("0.0.0.0", 0)
    assert channel.remote_data == channel.remote_control == SocketAddress("10.9.9.9", 40123)
    assert channel.is_connectable
    assert not channel.has_group_semantics
    assert channel.interface is None


def test_explicit_control_is_the_local_address():
    channel = resolve("endpoint=far:40123|control=10.0.0.7:40124")
    assert channel.local_data == channel.local_control == SocketAddress("10.0.0.7", 40124)
    assert channel.remote_data == channel.remote_control == SocketAddress("10.9.9.9", 40123)
    assert channel.has_control
    assert channel.has_endpoint


def test_multicast_control_is_the_next_address():
    channel = resolve("endpoint=239.255.0.255:40456|ttl=4")
    assert channel.is_multicast
    assert channel.has_group_semantics
    assert channel.is_connectable
    assert channel.ttl == 4
    assert channel.interface == LAN
    assert channel.local_data == SocketAddress("10.0.0.7", 0)
    assert channel.remote_data == SocketAddress("239.255.0.255", 40456)
    assert channel.remote_control == SocketAddress("239.255.0.0", 40456)


@pytest.mark.parametrize(
    ("group", "control"),
    [
        ("239.255.0.1", "239.255.0.2"),
        ("224.0.1.255", "224.0.1.0"),
        ("ff02::ff", "ff02::"),
        ("ff02::1:fffd", "ff02::1:fffe"),
        ("ff02::1:ffff", "ff02::1:ff00"),
        ("ffff:" * 7 + "ffff", "ffff:" * 7 + "ff00"),
    ],
)
def test_only_the_last_byte_of_the_control_group_differs(group, control):
    host = f"[{group}]" if ":" in group else group
    channel = resolve(f"endpoint={host}:40456")
    assert channel.remote_data == SocketAddress(group, 40456)
    assert channel.remote_control == SocketAddress(control, 40456)


@pytest.mark.parametrize(
    "params", ["endpoint=far:1", "control-mode=manual", "endpoint=far:1|control=localhost:1"]
)
def test_only_a_group_has_a_time_to_live(params):
    assert resolve(f"{params}|ttl=4").ttl is None


def test_a_channel_over_ipc_has_no_addresses():
    for text in ("aeron:ipc", "aeron-spy:aeron:ipc"):
        with pytest.raises(InvalidChannelError, match=f"^channel '{text}': expected a udp channel"):
            udp_channel.resolve(uri.parse(text), Machine(), UNIQUE)


def test_multicast_ipv6_takes_an_ipv6_interface():
    channel = resolve("endpoint=[ff02::fb]:40456")
    assert channel.interface == LAN_V6
    assert channel.remote_control == SocketAddress("ff02::fc", 40456)


@pytest.mark.parametrize(
    ("interfaces", "chosen"), [((LOOPBACK, WAN), WAN), ((LOOPBACK,), LOOPBACK)]
)
def test_multicast_uses_the_loopback_only_without_another_interface(interfaces, chosen):
    assert resolve("endpoint=224.0.1.1:40456", *interfaces).interface == chosen


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ("endpoint=224.0.1.2:40456", "odd last byte"),
        ("endpoint=[ff02::2]:40456", "odd last byte"),
        ("alias=x", "expected endpoint, control, tags"),
        ("control-mode=something", "expected endpoint, control, tags"),
        ("control-mode=dynamic|endpoint=far:1", "control-mode=dynamic requires control"),
        ("control=224.0.1.2:1|control-mode=dynamic", "expected a unicast address"),
        ("control=far:1|endpoint=far6:1", "different address families"),
        ("endpoint=far", "endpoint=far: expected host:port"),
        ("endpoint=::1:40123", "expected host:port or [ipv6]:port"),
        ("endpoint=far:65536", "expected a port of at most 65535"),
        ("endpoint=far:-1", "expected host:port"),
        ("endpoint=far:1|interface=10.0.0.0/33", "expected at most 32 bits"),
        ("endpoint=far6:1|interface=[fd00::]/129", "expected at most 128 bits"),
        ("endpoint=far:1|interface=10.0.1.0/24", "no interface with a matching IPv4"),
        ("endpoint=far:1|interface={eth9}", "unknown interface eth9"),
        ("control=far:1|control-mode=dynamic|interface=10.0.1.0/24", "no interface with a"),
        ("control=far:1|endpoint=far:2|interface={eth9}", "unknown interface eth9"),
        ("endpoint=far:1|interface=10.0.0.0/x", "expected address[:port][/prefix]"),
        ("endpoint=far:1|ttl=256", "ttl=256: expected at most 255"),
        ("endpoint=far:1|ttl=-1", "ttl=-1: expected at least 0"),
        ("endpoint=far:1|so-rcvbuf=2g", "so-rcvbuf=2g: expected at most 2147483647"),
        ("endpoint=far:1|ats=yes", "ats=yes: expected true or false"),
        ("endpoint=far:1|nak-delay=x", "nak-delay=x: expected a duration"),
    ],
)
def test_refuses(params, reason):
    with pytest.raises(ConfigurationError) as failure:
        resolve(params)
    assert reason in str(failure.value)


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ("a", "tags=a: expected an integer"),
        ("1,a", "tags=a: expected an integer"),
        ("9223372036854775808", "expected at most 9223372036854775807"),
        ("1,2,3", "expected channelTag[,entityTag]"),
        ("-1", "the tag -1 is reserved"),
        ("1,-1", "the tag -1 is reserved"),
    ],
)
def test_a_channel_with_invalid_tags_is_invalid(tags, reason):
    with pytest.raises(InvalidChannelError) as failure:
        resolve(f"endpoint=far:1|tags={tags}")
    assert reason in str(failure.value)


def test_an_unknown_name_is_an_error_of_its_own():
    with pytest.raises(UnknownHostError, match=r"^endpoint=nowhere: unknown host"):
        resolve("endpoint=nowhere:1")


@pytest.mark.parametrize("params", ["endpoint=far:65535", "endpoint=far:1|ttl=255|tags=1,2"])
def test_nearest_accepted(params):
    assert resolve(params).has_endpoint


def test_socket_settings_and_tags_are_read():
    channel = resolve(
        "endpoint=far:1|so-sndbuf=64k|so-rcvbuf=128k|rcv-wnd=32k|nak-delay=3us|tags=-5,9"
    )
    assert (channel.socket_sndbuf_length, channel.socket_rcvbuf_length) == (65536, 131072)
    assert (channel.receiver_window_length, channel.nak_delay_ns) == (32768, 3000)
    assert (channel.channel_tag, channel.entity_tag) == (-5, 9)


@pytest.mark.parametrize(
    ("mode", "is_list", "is_connectable"),
    [("manual", True, False), ("dynamic", True, False), ("response", False, False)],
)
def test_control_modes(mode, is_list, is_connectable):
    channel = resolve(f"control=localhost:24340|control-mode={mode}")
    assert channel.control_mode is ControlMode(mode)
    assert channel.is_multi_destination == is_list == channel.has_group_semantics
    assert channel.is_connectable == is_connectable
    assert resolve(f"control=localhost:1|endpoint=far:1|control-mode={mode}X").is_connectable


def test_channels_with_one_tag_match():
    first = resolve("endpoint=far:40123|tags=5")
    assert resolve("tags=5").matches_tag(first)
    assert resolve("endpoint=far:40123|tags=5").matches_tag(first)
    assert not resolve("endpoint=far:40123|tags=6").matches_tag(first)
    assert not resolve("endpoint=far:40123").matches_tag(first)
    for params in (
        "endpoint=far:40124|tags=5",
        "tags=5|control-mode=manual",
        "control=far:1|tags=5",
    ):
        with pytest.raises(InvalidChannelError, match="matching tag 5 has mismatched"):
            resolve(params).matches_tag(first)


@pytest.mark.parametrize(
    ("first", "second", "is_match"),
    [
        ("endpoint=far:1|interface=10.0.0.7", "endpoint=far:1|interface=10.0.0.0/24", True),
        ("endpoint=far:1|interface=10.0.0.7", "endpoint=far:1", False),
        ("endpoint=far:1", "endpoint=far:1|interface=10.0.0.7", False),
        ("endpoint=far:1", "endpoint=far:1|interface=0.0.0.0/0", True),
        ("endpoint=far:1|interface=10.0.0.7:9", "endpoint=far:1|interface=10.0.0.7", False),
        ("endpoint=far:1|interface=10.0.0.7", "alias=x", True),
        ("endpoint=far:1|interface=10.0.0.7", "interface=10.0.0.7", False),
        ("endpoint=far:1|control=localhost:2", "endpoint=far:1|control=127.0.0.1:2", True),
        ("endpoint=far:1|control=localhost:2", "endpoint=far:1", False),
        ("endpoint=far:1", "endpoint=far:1|control=localhost:2", False),
        ("endpoint=far:1|control=localhost:2", "control=localhost:2", False),
        ("endpoint=far:1|control=localhost:2", "endpoint=0.0.0.0:0", True),
        ("endpoint=far6:1", "endpoint=far:1", False),
        ("endpoint=far6:1", "endpoint=[::]:0", True),
        ("endpoint=far6:1", "alias=x", True),
        ("control-mode=manual", "endpoint=far:1", False),
        ("control-mode=manual", "alias=x", True),
        ("endpoint=224.0.1.1:1|interface=10.0.0.7", "endpoint=224.0.1.1:1", True),
        ("endpoint=224.0.1.1:1|interface=192.168.4.9", "endpoint=224.0.1.1:1", False),
    ],
)
def test_a_tag_is_shared_with_the_same_addresses_or_none(first, second, is_match):
    existing, channel = resolve(f"tags=5|{first}"), resolve(f"tags=5|{second}")
    if is_match:
        assert channel.matches_tag(existing)
        return
    with pytest.raises(InvalidChannelError, match=r"^matching tag 5 has mismatched endpoint"):
        channel.matches_tag(existing)


@pytest.mark.parametrize(
    ("params", "is_allowed"),
    [
        ("endpoint=far:1", True),
        ("endpoint=far:0", False),
        ("endpoint=far:0|control=localhost:1|control-mode=dynamic", True),
        ("control=localhost:1", False),
        ("control=localhost:1|endpoint=far:1", True),
        ("control=localhost:1|control-mode=response", True),
        ("endpoint=far:1|control=localhost:1|control-mode=response", True),
        ("endpoint=far:0|control=localhost:1|control-mode=response", False),
        ("control-mode=manual", True),
        ("endpoint=224.0.1.1:9|control-mode=manual", True),
        ("endpoint=224.0.1.1:9|control=localhost:1", True),
        ("endpoint=224.0.1.1:9|control=localhost:1|control-mode=dynamic", False),
    ],
)
def test_channels_of_publications(params, is_allowed):
    channel = resolve(params)
    if is_allowed:
        admission.check_publication(channel)
    else:
        with pytest.raises(InvalidChannelError):
            admission.check_publication(channel)


@pytest.mark.parametrize("text", ["aeron:ipc", "aeron:udp?endpoint=far:1"])
def test_nothing_is_published_to_a_spy(text):
    admission.refuse_spy(uri.parse(text))
    with pytest.raises(InvalidChannelError, match=f"^channel 'aeron-spy:{re.escape(text)}'"):
        admission.refuse_spy(uri.parse(f"aeron-spy:{text}"))


@pytest.mark.parametrize("check", [admission.check_publication, admission.check_subscription])
def test_encryption_is_refused_and_not_ignored(check):
    check(resolve("endpoint=far:1|ats=false"))
    with pytest.raises(ConfigurationError, match=r"^ats=true: this driver has no Aeron Transport"):
        check(resolve("endpoint=far:1|ats=true"))


def test_a_subscription_needs_a_control_port():
    admission.check_subscription(resolve("endpoint=far:0"))
    admission.check_subscription(resolve("endpoint=far:0|control=far:1"))
    with pytest.raises(InvalidChannelError, match=r"^control=far:0: expected a port other than 0"):
        admission.check_subscription(resolve("endpoint=far:1|control=far:0"))


@pytest.mark.parametrize("control", ["far:1", "far:0", "224.20.30.40:1"])
def test_a_multicast_channel_ignores_control(control):
    plain = resolve("endpoint=224.0.1.1:9|interface=10.0.0.7")
    channel = resolve(f"endpoint=224.0.1.1:9|interface=10.0.0.7|control={control}")
    admission.check_subscription(channel)
    assert not channel.has_control
    assert channel._replace(uri=plain.uri) == plain


@pytest.mark.parametrize(
    "param",
    ["mtu=8k", "rcv-wnd=64k", "so-sndbuf=1", "so-rcvbuf=1", "response-correlation-id=1",
     "control-mode=response"],
)  # fmt: skip
def test_a_destination_refuses_parameters_of_the_whole_channel(param):
    admission.check_destination(uri.parse("aeron:udp?endpoint=far:1|term-length=64k"))
    with pytest.raises(InvalidChannelError, match=f"^{param}: not allowed on a destination"):
        admission.check_destination(uri.parse(f"aeron:udp?endpoint=far:1|{param}"))


def test_a_destination_can_be_sent_to():
    admission.check_send_destination(uri.parse("aeron:udp?endpoint=far:1"))


@pytest.mark.parametrize(
    ("channel", "kind", "text"),
    [
        ("aeron:udp?endpoint=far:0", ConfigurationError, "port other than 0"),
        ("aeron:udp?control=far:1", ConfigurationError, "must be a UDP channel with an endpoint"),
        ("aeron:ipc", ConfigurationError, "must be a UDP channel with an endpoint"),
        ("aeron:udp?endpoint=far", InvalidChannelError, "expected host:port"),
        ("aeron-spy:aeron:udp?endpoint=far:1", InvalidChannelError, "spies are invalid"),
        ("aeron:udp?endpoint=far:1|mtu=8k", InvalidChannelError, "not allowed on a destination"),
    ],
)
def test_a_destination_that_cannot_be_sent_to_is_refused(channel, kind, text):
    with pytest.raises(ConfigurationError, match=text) as caught:
        admission.check_send_destination(uri.parse(channel))
    assert type(caught.value) is kind


PIECES = st.sampled_from(
    [
        "far",
        "10.0.0.1",
        "[::1]",
        "[",
        "]",
        ":",
        "/",
        "%",
        "1",
        "65536",
        "{eth0}",
        "",
        "224.0.1.1",
        "é",
    ]
)


@given(st.lists(PIECES, max_size=5), st.lists(PIECES, max_size=5), st.booleans())
def test_any_address_is_a_channel_or_an_error(endpoint, interface, is_control):
    key = "control-mode=dynamic|control" if is_control else "endpoint"
    params = f"{key}={''.join(endpoint) or 'x'}|interface={''.join(interface) or 'y'}"
    try:
        channel = resolve(params)
    except ConfigurationError:
        return
    assert channel.canonical_form.startswith("UDP-")


@pytest.mark.parametrize(
    ("interface", "form"),
    [
        ("[fd00::]:5000/64", "UDP-[fd00::7]:5000-far6:1"),
        ("[fd00::7]:5000", "UDP-[fd00::7]:5000-far6:1"),
        ("[fd00::]/64", "UDP-[fd00::7]:0-far6:1"),
    ],
)
def test_the_port_of_an_interface_precedes_its_prefix(interface, form):
    # Source: InterfaceSearchAddress.getPort and aeron_interface_split of Aeron 1.53.
    assert resolve(f"endpoint=far6:1|interface={interface}").canonical_form == form


@pytest.mark.parametrize("interface", ["10.0.0.0/24:5000", "[fd00::]/64:5000", "{eth0}/24"])
def test_a_prefix_is_the_last_part_of_an_interface(interface):
    with pytest.raises(InvalidChannelError, match="expected address"):
        resolve(f"endpoint=far:1|interface={interface}")
