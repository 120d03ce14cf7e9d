"""Random channels, valid and invalid ones.

Left out is what differs on purpose (docs/behaviour.md, "Different on purpose") and what a defect of
the C driver would change later (docs/findings): windows beyond the receive buffer, tags alone,
address families and `control` of multicast channels that do not fit, unknown values of `cc`, `fc`,
`group`, `nak-delay` and `ttl`, and the first port 0 of a range. So are keys that occur twice, and
what takes longer than a test: publications without EOS, and windows below the MTU, for which the C
driver reports each SETUP and ours fewer of them.
"""

from random import Random
from typing import NamedTuple

GROUPS = ("224.20.30.39:20040", "224.20.30.41:20050")
ENDPOINTS = (
    *("127.0.0.1:20010", "127.0.0.1:20020", "localhost:20030", "[::1]:20060", "127.0.0.1:0"),
    *GROUPS,
)
CONTROLS = ("127.0.0.1:20110", "127.0.0.1:20120")


class Places(NamedTuple):
    """The addresses that channels of a host have."""

    peers: tuple[str, ...]
    """Endpoints to which publications send."""
    own: tuple[str, ...]
    """Endpoints at which subscriptions receive."""
    controls: tuple[str, ...]
    """Control addresses of publications."""
    peer_controls: tuple[str, ...]
    """Control addresses of publications to which subscriptions send."""
    response: str
    """The endpoint of a subscription to a control address."""
    interfaces: tuple[str, ...]
    congestion_controls: tuple[str, ...]


LOOPBACK = Places(
    ENDPOINTS, ENDPOINTS, CONTROLS, CONTROLS, "127.0.0.1:20210",
    ("127.0.0.1", "127.0.0.0/8", "10.99.0.1"), ("static", "cubic"),
)  # fmt: skip
MALFORMED = (
    *("", "aeron", "aeron:", "aeron:foo", "aeron:udp?", "aeron:udp?endpoint", "aeron-spy:"),
    *("aeron:udp?endpoint=", "aeron:udp?endpoint=127.0.0.1", "aeron:udp?endpoint=127.0.0.1:99999"),
    *(
        "aeron-spy:aeron:ipc",
        "aeron:udp?endpoint=127.0.0.1:20010||",
        "aeron:UDP?endpoint=1.1.1.1:1",
    ),
    *("aeron:udp?|endpoint=127.0.0.1:20010", "aeron:udp?endpoint=224.0.0.2:1", "aeron:udp?foo=bar"),
    "x" * 4_000,
)
_PUBLICATION = {
    "term-length": ("64k", "128k", "65536", "100", "32k"), "mtu": ("1408", "2048", "64k", "100"),
    "linger": ("100ms", "0", "foo"), "session-id": ("77", "78", "-5", "tag:3", "abc"),
    "sparse": ("true", "false"), "ssc": ("true", "false"), "alias": ("foo",),
    "pub-wnd": ("16k", "1m", "1"), "max-resend": ("10", "1000"), "term-offset": ("64",),
    "response-correlation-id": ("prototype", "1"), "untethered-window-limit-timeout": ("1s",),
}  # fmt: skip
_SUBSCRIPTION = {
    "session-id": ("77", "78", "-5", "tag:3", "abc"), "tether": ("true", "false"),
    "rejoin": ("true", "false"), "reliable": ("true", "false"), "alias": ("foo", "bar"),
    "rcv-wnd": ("16k", "64k"), "response-correlation-id": ("prototype", "1"),
    "untethered-resting-timeout": ("1s",), "term-length": ("64k",), "sparse": ("true",),
}  # fmt: skip
_UDP_PUBLICATION = {
    "ttl": ("3",), "so-sndbuf": ("128k",),
    "fc": ("max", "min", "min,t:500ms", "min,g:/1", "tagged,g:7", "tagged,g:7/1", "min,g:7/1"),
    "gtag": ("7",), "channel-snd-ts-offset": ("0", "reserved"),
}  # fmt: skip
_UDP_SUBSCRIPTION = {
    "so-rcvbuf": ("128k", "256k"),
    "group": ("true", "false", "infer"), "gtag": ("7", "8"),
    "nak-delay": ("1ms",), "channel-rcv-ts-offset": ("0", "reserved"),
}  # fmt: skip
_START = {
    "init-term-id": (0, 5, -3, 2**31 - 1), "term-id": (0, 6, -3, -(2**31)),
    "term-offset": (0, 64, 1_024, 100),
}  # fmt: skip


class Channels:
    """Draws channels."""

    def __init__(self, random: Random, places: Places = LOOPBACK) -> None:
        self._random, self._places = random, places
        both = {"interface": places.interfaces, "cc": places.congestion_controls}
        self._udp_publication = both | _UDP_PUBLICATION
        self._udp_subscription = both | _UDP_SUBSCRIPTION

    def publication(self) -> str:
        random = self._random
        params = self._some(_PUBLICATION, 0.08)
        if random.random() < 0.15:
            params |= {key: str(random.choice(values)) for key, values in _START.items()}
        if random.random() < 0.3:
            return _text("aeron:ipc", params)
        kind = random.random()
        if kind < 0.6:
            params["endpoint"] = random.choice(self._places.peers)
        else:
            params["control"] = random.choice(self._places.controls)
            params["control-mode"] = random.choice(("dynamic", "dynamic", "manual", "response"))
        return self._udp(params, self._udp_publication)

    def subscription(self) -> str:
        random = self._random
        params = self._some(_SUBSCRIPTION, 0.08)
        kind = random.random()
        if kind < 0.25:
            return _text("aeron:ipc", params)
        if kind < 0.75:
            params["endpoint"] = random.choice(self._places.own)
        elif kind < 0.87:
            params["control-mode"] = "manual"
        else:
            own = self._places.response.rpartition(":")[0]
            params |= {"endpoint": f"{own}:0", "control": random.choice(self._places.peer_controls)}
        spy = "aeron-spy:" if random.random() < 0.2 else ""
        return spy + self._udp(params, self._udp_subscription)

    def fitting(self, readers: Places | None = None) -> tuple[str, str]:
        """Return the channels of a publication and of a subscription to it, which may be on a host
        with other places.
        """
        readers = readers or self._places
        control = self._places.controls[0]
        dynamic = f"aeron:udp?control={control}|control-mode=dynamic"
        to_dynamic = f"aeron:udp?endpoint={readers.response}|control={control}"
        pairs = [(dynamic, to_dynamic), (f"{dynamic}|fc=tagged,g:7/1", f"{to_dynamic}|gtag=7")]
        common = [each for each in self._places.peers if each in readers.own]
        common = [each for each in common if not each.endswith(":0")]
        unicast = f"aeron:udp?endpoint={self._random.choice(common or self._places.peers)}"
        if common:
            pairs.append((unicast, unicast))
        if readers is self._places:
            pairs += ("aeron:ipc", "aeron:ipc"), (unicast, f"aeron-spy:{unicast}")
        return self._random.choice(pairs)

    def destination(self, *, sends: bool) -> str:
        own = self._places.response
        near = self._places.peers if sends else self._places.own
        hosts = (*near, own, own.replace("20210", "20220"), "nowhere.invalid:1")
        usual = [f"aeron:udp?endpoint={each}" for each in hosts]
        one = usual[0]
        unusual = (
            *("aeron:ipc", f"aeron-spy:{one}", "aeron:udp", "foo"),
            *("aeron:udp?control-mode=manual", f"{one}|tags=3"),
            *(f"{one}|rcv-wnd=16k", "aeron:udp?alias=x"),
        )
        return self._random.choice(usual if self._random.random() < 0.8 else unusual)

    def _udp(self, params: dict[str, str], others: dict[str, tuple[str, ...]]) -> str:
        params |= self._some(others, 0.06)
        if "[" in params.get("endpoint", ""):
            params.pop("interface", None)
        return _text("aeron:udp", params)

    def _some(self, values: dict[str, tuple[str, ...]], share: float) -> dict[str, str]:
        random = self._random
        return {key: random.choice(each) for key, each in values.items() if random.random() < share}


def _text(start: str, params: dict[str, str]) -> str:
    pairs = "|".join(f"{key}={value}" for key, value in params.items())
    return f"{start}?{pairs}" if pairs or start == "aeron:udp" else start
