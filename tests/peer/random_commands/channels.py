"""Random channels, valid and invalid ones.

Left out is what differs on purpose (docs/behaviour.md, "Different on purpose") and what a defect of
the C driver would change later (docs/findings): windows beyond the receive buffer, tags alone,
address families and `control` of multicast channels that do not fit, unknown values of `cc`, `fc`,
`group`, `nak-delay` and `ttl`, and the first port 0 of a range. So are keys that occur twice, and
what takes longer than a test: publications without EOS.
"""

from random import Random

ENDPOINTS = (
    *("127.0.0.1:20010", "127.0.0.1:20020", "localhost:20030", "[::1]:20060", "127.0.0.1:0"),
    *("224.20.30.39:20040", "224.20.30.41:20050"),
)
CONTROLS = ("127.0.0.1:20110", "127.0.0.1:20120")
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
    "rcv-wnd": ("16k", "64k", "1"), "response-correlation-id": ("prototype", "1"),
    "untethered-resting-timeout": ("1s",), "term-length": ("64k",), "sparse": ("true",),
}  # fmt: skip
_UDP_PUBLICATION = {
    "interface": ("127.0.0.1", "127.0.0.0/8", "10.99.0.1"), "ttl": ("3",), "so-sndbuf": ("128k",),
    "fc": ("max", "min", "min,t:500ms", "min,g:/1", "tagged,g:7", "tagged,g:7/1", "min,g:7/1"),
    "gtag": ("7",), "cc": ("static", "cubic"), "channel-snd-ts-offset": ("0", "reserved"),
}  # fmt: skip
_UDP_SUBSCRIPTION = {
    "interface": ("127.0.0.1", "127.0.0.0/8", "10.99.0.1"), "so-rcvbuf": ("128k", "256k"),
    "group": ("true", "false", "infer"), "gtag": ("7", "8"), "cc": ("static", "cubic"),
    "nak-delay": ("1ms",), "channel-rcv-ts-offset": ("0", "reserved"),
}  # fmt: skip
_START = {
    "init-term-id": (0, 5, -3, 2**31 - 1), "term-id": (0, 6, -3, -(2**31)),
    "term-offset": (0, 64, 1_024, 100),
}  # fmt: skip


class Channels:
    """Draws channels."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def publication(self) -> str:
        random = self._random
        params = self._some(_PUBLICATION, 0.08)
        if random.random() < 0.15:
            params |= {key: str(random.choice(values)) for key, values in _START.items()}
        if random.random() < 0.3:
            return _text("aeron:ipc", params)
        kind = random.random()
        if kind < 0.6:
            params["endpoint"] = random.choice(ENDPOINTS)
        else:
            params["control"] = random.choice(CONTROLS)
            params["control-mode"] = random.choice(("dynamic", "dynamic", "manual", "response"))
        return self._udp(params, _UDP_PUBLICATION)

    def subscription(self) -> str:
        random = self._random
        params = self._some(_SUBSCRIPTION, 0.08)
        kind = random.random()
        if kind < 0.25:
            return _text("aeron:ipc", params)
        if kind < 0.75:
            params["endpoint"] = random.choice(ENDPOINTS)
        elif kind < 0.87:
            params["control-mode"] = "manual"
        else:
            params |= {"endpoint": "127.0.0.1:0", "control": random.choice(CONTROLS)}
        spy = "aeron-spy:" if random.random() < 0.2 else ""
        return spy + self._udp(params, _UDP_SUBSCRIPTION)

    def fitting(self) -> tuple[str, str]:
        """Return the channels of a publication and of a subscription to it."""
        endpoint = self._random.choice([each for each in ENDPOINTS if not each.endswith(":0")])
        unicast, control = f"aeron:udp?endpoint={endpoint}", CONTROLS[0]
        dynamic = f"aeron:udp?control={control}|control-mode=dynamic"
        to_dynamic = f"aeron:udp?endpoint=127.0.0.1:20210|control={control}"
        pairs = (
            *(("aeron:ipc", "aeron:ipc"), (unicast, unicast), (unicast, f"aeron-spy:{unicast}")),
            *((dynamic, to_dynamic), (f"{dynamic}|fc=tagged,g:7/1", f"{to_dynamic}|gtag=7")),
        )
        return self._random.choice(pairs)

    def destination(self) -> str:
        hosts = (*ENDPOINTS, "127.0.0.1:20210", "127.0.0.1:20220", "nowhere.invalid:1")
        usual = [f"aeron:udp?endpoint={each}" for each in hosts]
        unusual = (
            *("aeron:ipc", "aeron-spy:aeron:udp?endpoint=127.0.0.1:20010", "aeron:udp", "foo"),
            *("aeron:udp?control-mode=manual", "aeron:udp?endpoint=127.0.0.1:20010|tags=3"),
            *("aeron:udp?endpoint=127.0.0.1:20010|rcv-wnd=16k", "aeron:udp?alias=x"),
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
