"""Scenarios of any kind, drawn from a seed. A sound driver passes all of them.

hosts     two to five: a star around host a, or a link between any two
streams   one to four: unicast, multicast, dynamic or manual multi-destination-cast; reliable or not
links     delays, losses, duplicates, damage, a rate
faults    up to four rules, of any action but corruption of payloads and forged frames that a driver
          must accept
events    pauses, kills, impairments for a while, steps of clocks
checks    all of them, for each stream that they apply to

What validation refuses is left out, so a scenario may have fewer rules, events and checks.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.sim.random_recordings import Archives, neighbours
from windtunnel.harness.orchestrate.suite.runner import RunSummary
from windtunnel.harness.scenario.loader import ScenarioError, load_scenario
from windtunnel.harness.scenario.schema.model import Scenario
from windtunnel.harness.scenario.schema.problem import Problem
from windtunnel.harness.scenario.validation.validation import problems
from windtunnel.harness.verdict.registry import CHECKS

FAULT_OF_SCENARIO = "(at fault: the scenario)"
Document = dict[str, Any]
KIB = 1 << 10
TERMS = {"64k": 64 * KIB, "128k": 128 * KIB, "256k": 256 * KIB, "1m": 1 << 20}
DELIVERY = ("delivered_once", "delivered_intact", "delivered_in_parts", "delivered_unbroken")
OF_RELIABLE = (
    *("naks_only_for_gaps", "naks_paced", "naks_in_time", "naks_answered_whole"),
    *("loss_report_agrees", "naks_and_retransmits_agree"),
)
OF_UNRELIABLE = (
    *("no_naks", "pad_only_where_lost", "gap_fills_counted"),
    *("gap_fills_prompt", "gap_fills_cover_nothing"),
)
OF_ONE_IMAGE = (
    *("positions_covered", "image_log_equals_publication"),
    *("rcv_pos_reaches_end", "eos_reaches_end"),
)
WITHOUT_STREAM = ("expect_frames", "merged_into_live", "recording_equals_published")
FORGED = (
    {"type": "DATA", "session": "other", "payload": "50B"},
    {"type": "DATA", "place": {"advance": "1MiB"}, "payload": "50B"},
    {"type": "DATA", "place": {"advance": "4KiB", "shift": "4B"}, "payload": "60B"},
    {"type": "PAD", "place": {"term_end": "-64B"}, "length": "96B"},
)
"""Frames that each driver rejects."""
POSITIONS = (
    {"from": "8KiB", "length": "16KiB"},
    {"from": "0B", "length": "1408B"},
    {"from": "4KiB", "length": "2KiB", "every": "32KiB"},
    *({"at": place} for place in ("term-end", "term-start", "stream-end")),
)
CUTS = ({"after": "50ms", "for": "300ms"}, {"after": "10ms", "for": "50ms"})
TIMES = (*CUTS, {"after": "50ms"}, {"after": "10ms", "for": "20ms", "every": "100ms"})
IMPAIRMENTS: tuple[Document, ...] = (
    {"loss": "3%"},
    {"loss": {"good_to_bad": "1%", "bad_to_good": "30%"}},
    {"duplicate": "3%"},
    {"corrupt": "1%"},
    {"rate": "20Mbit/s", "queue": 2000},
)
FOR_A_WHILE = ({"loss": "10%"}, {"delay": "5ms"}, {"duplicate": "10%"}, {"rate": "10Mbit/s"})


class Draw:
    """The parts of one scenario."""

    def __init__(self, seed: int) -> None:
        self._random = Random(f"scenarios {seed}")
        self.hosts = list("abcde")[: self.pick(2, 2, 2, 3, 3, 4, 5)]
        pairs = [(x, y) for index, x in enumerate(self.hosts) for y in self.hosts[index + 1 :]]
        is_star = len(self.hosts) == 5 or self.happens(70)
        self.pairs = [each for each in pairs if not is_star or each[0] == "a"]
        ways = [*self.pairs, *((y, x) for x, y in self.pairs)]
        self.directions = ["->".join(each) for each in ways]
        self.kills = self.happens(15)
        """Whether an event kills a process."""
        self.archives = not self.kills and seed % 3 == 0
        """Whether archives record streams."""
        self.traffic = [self._stream(index) for index in range(self.pick(1, 1, 2, 3, 4))]

    def pick(self, *values: Any) -> Any:
        return self._random.choice(values)

    def happens(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def links(self) -> list[Document]:
        found = []
        used = {frozenset((each["from"], host)) for each in self.traffic for host in _to(each)}
        for pair in self.pairs:
            own: Document = {}
            if self.happens(50):
                own["delay"] = {"mean": self.pick("100us", "1ms", "5ms", "20ms")}
            if self.happens(20):
                own |= self.pick(*IMPAIRMENTS)
            link: Document = {"between": list(pair)}
            if own and frozenset(pair) in used:
                link["impairments"] = {"both": own}
            found.append(link)
        return found

    def _stream(self, index: int) -> Document:
        host, to = self.pick(*self.pairs)
        if self.happens(30):
            host, to = to, host
        near = neighbours(host, self.pairs)
        term = self.pick("64k", "64k", *TERMS)
        mtu = self.pick(64, 256, 1408, 1408, 1408, 4096, 8192)
        initial = self.pick(-3, 0, 7, (1 << 31) - 1, -(1 << 31))
        offset = self.pick(0, 0, 32, 4096, TERMS[term] - 64)
        sending = f"term-length={term}|mtu={mtu}"
        if self.happens(70):
            sending += f"|init-term-id={initial}|term-id={initial}|term-offset={offset}"
        for percent, parameter in (
            (10, "windtunnel.retransmit-ranges=true"),
            (15, f"linger={self.pick('0', '50ms', '1s')}"),
            (10, f"pub-wnd={self.pick('32k', '16k')}"),
            (10, self.pick("sparse=true", "eos=false")),
        ):
            sending += f"|{parameter}" if self.happens(percent) else ""
        receiving = "" if self.happens(75) else "|reliable=false"
        for percent, parameter in (
            (30, f"nak-delay={self.pick('10us', '1ms', '5ms')}"),
            (25, f"rcv-wnd={self.pick('16k', '32k', '128k')}"),
            (10, "cc=cubic"),
            (10, "windtunnel.nak-all-gaps=true"),
        ):
            receiving += f"|{parameter}" if self.happens(percent) else ""
        kinds: tuple[Callable[..., Document], ...] = (_unicast, _unicast, _dynamic, _manual, _group)
        kind = self.pick(*(kinds if len(near) > 1 else kinds[:3]))
        receivers = [to] if kind is _unicast else self._random.sample(near, min(len(near), 2))
        control = self.pick(*([f"min,g:/{len(receivers)}"] * 4), "min", "max")
        found: Document = {"id": f"s{index}", "stream": 1001 + index, "from": host}
        found |= {"to": receivers, "publication": self.pick("exclusive", "concurrent")}
        found |= kind(host, receivers, 24330 + 10 * index, f"{sending}|fc={control}", receiving)
        if kind is not _unicast and self.happens(50):
            found["starts_with"] = "all"
        return found | self._pace(mtu)

    def _pace(self, mtu: int) -> Document:
        longest = self.pick("64B", "1KiB", "1376B", "4000B", "max")
        shortest = "1B" if longest == "max" else self.pick("1B", "32B", longest)
        kib = self.pick(4, 32) if mtu == 64 else self.pick(16, 64, 192, 512)
        content: Document = {"bytes": f"{kib}KiB", "message": {"from": shortest, "to": longest}}
        pace: Document = {}
        if self.happens(50):
            pace["rate"] = self.pick("128KiB/s", "512KiB/s", "2MiB/s")
        if self.happens(15):
            pace["rests"] = {"every": f"{kib // 4}KiB", "for": self.pick("20ms", "150ms", "700ms")}
        content |= {"pace": pace} if pace else {}
        if self.happens(15):
            content["close_after"] = self.pick("10ms", "500ms")
        found: Document = {"content": content}
        if self.happens(20):
            rests = {"every": f"{max(1, kib // 8)}KiB", "for": self.pick("10ms", "100ms")}
            found["consume"] = {"rests": rests}
        if self.kills or self.happens(8):
            found["rejoins"] = True
        return found

    def fault(self, index: int) -> Document:
        types = self.pick(
            *("DATA", "DATA", ["DATA", "PAD"], "PAD", "SM", "NAK", ["SM", "NAK"]),
            *("SETUP", "HEARTBEAT", "CONTROL", "ANY"),
        )
        is_data = types in ("DATA", "PAD", ["DATA", "PAD"])
        what: Document = {"type": types}
        if self.happens(30):
            what["stream"] = self.pick(*self.traffic)["stream"]
        if types == "DATA" and self.happens(30):
            what["position"] = self.pick(*POSITIONS)
        if types in ("SM", "NAK", "SETUP", "HEARTBEAT") and self.happens(30):
            what["order"] = self.pick({"from": 1, "to": 3}, {"from": 2, "every": 3}, 1)
        link = self.pick(*self.directions, "both", "a->*", "*->a")
        rule: Document = {"id": f"r{index}", "where": {"link": link}, "what": what}
        act = self._act()
        is_cut = act == {"drop": "always"} and "order" not in what and "position" not in what
        if is_cut or self.happens(20):
            rule["when"] = self.pick(*(CUTS if is_cut else TIMES))
        if is_data and not is_cut and (act == {"drop": "always"} or self.happens(40)):
            rule["attempt"] = self.pick(1, {"from": 1, "to": 2})
        return rule | {"act": act}

    def _act(self) -> Document:
        share = self.pick("2%", "5%", "15%")
        until = self.pick({"frames": 5}, {"advance": "8KiB"}, {"consumed": True})
        acts: tuple[Document, ...] = (
            *({"drop": each} for each in (share, share, "always")),
            {"drop": {"good_to_bad": "2%", "bad_to_good": "30%"}},
            {"duplicate": self.pick(share, {"share": share, "copies": 2, "for": "3ms"})},
            {"hold": {"share": share, "for": self.pick("1ms", "20ms", "200ms")}},
            {"hold": {"share": share, "until": until, "at_most": "100ms"}},
            {"swap": share},
            {"displace": {"share": share, "by": self.pick(1, 5, 20)}},
            {"corrupt": {"share": share, "field": "version"}},
            {"truncate": {"share": share, "to": self.pick("6B", "20B", "40B")}},
            {"inject": {"share": share, "frames": [self.pick(*FORGED)]}},
            {"readdress": {"source_port": 40001}},
        )
        return self.pick(*acts)

    def event(self, index: int) -> Document:
        when = self.pick(
            *({"after": each} for each in ("0ms", "20ms", "100ms", "400ms")),
            *({key: "1KiB"} for key in ("published", "delivered")),
        )
        host = {"host": self.pick(*self.hosts)}
        process = self.pick("driver", "publisher", "subscriber", "all")
        if self.kills and index == 0:
            host["process"] = self.pick("driver", "publisher")
            act: Document = {"kill": {"restart_after": self.pick("500ms", "4s")}}
        elif self.happens(50):
            host["process"] = process
            act = {"pause": self.pick("30ms", "300ms", "1500ms")}
        elif self.happens(70):
            act = {"impair": self.pick(*FOR_A_WHILE) | {"for": self.pick("50ms", "500ms")}}
        else:
            act = {"step_clock": self.pick("-5s", "1s", "-100ms")}
        return {"id": f"e{index}", "whom": host, "when": when, "act": act}

    def checks(self, faults: list[Document]) -> list[Document]:
        """Return each check, with the streams to which it applies."""
        found: dict[str, list[str]] = {}
        invalid = {"corrupt", "truncate", "inject"}
        has_invalid = any(invalid & each["act"].keys() for each in faults)
        for stream in self.traffic:
            is_reliable = "reliable=false" not in stream["receive"]
            rejoins = stream.get("rejoins", False)
            delivery = DELIVERY[2 if rejoins else 0] if is_reliable else DELIVERY[1]
            needless = {*WITHOUT_STREAM, *DELIVERY} - {delivery}
            needless |= {*(OF_UNRELIABLE if is_reliable else OF_RELIABLE)}
            needless -= {"recording_equals_published"} if "recorded" in stream else set()
            needless -= {"merged_into_live"} if "merges" in stream else set()
            needless |= {"invalid_packets_zero"} if has_invalid else set()
            needless |= {*OF_ONE_IMAGE} if rejoins else set()
            needless |= {"cubic_windows_shrink"} if "cubic" not in stream["receive"] else set()
            for name in CHECKS:
                if name not in needless:
                    found.setdefault(name, []).append(stream["id"])
        return [{name: {"traffic": streams}} for name, streams in found.items()]


def _to(stream: Document) -> list[str]:
    return list(stream["to"])


def _unicast(host: str, to: list[str], port: int, sending: str, receiving: str) -> Document:
    place = f"aeron:udp?endpoint=${{{to[0]}}}:{port}"
    return {"channel": f"{place}|{sending.partition('|fc=')[0]}", "receive": place + receiving}


def _dynamic(host: str, to: list[str], port: int, sending: str, receiving: str) -> Document:
    control = f"control-mode=dynamic|control=${{{host}}}:{port + 1}"
    receive = f"aeron:udp?endpoint=${{self}}:{port}|{control}{receiving}"
    return {"channel": f"aeron:udp?{control}|{sending}", "receive": receive}


def _manual(host: str, to: list[str], port: int, sending: str, receiving: str) -> Document:
    places = [f"aeron:udp?endpoint=${{{each}}}:{port}" for each in to]
    receive = f"aeron:udp?endpoint=${{self}}:{port}{receiving}"
    channel = f"aeron:udp?control-mode=manual|{sending}"
    return {"channel": channel, "destinations": places, "receive": receive}


def _group(host: str, to: list[str], port: int, sending: str, receiving: str) -> Document:
    place = f"aeron:udp?endpoint=224.20.30.39:{port}|interface=${{self}}"
    return {"channel": f"{place}|{sending}", "receive": place + receiving}


def document(seed: int) -> Document:
    """Return the scenario of a seed, with all that was drawn."""
    draw = Draw(seed)
    faults = [draw.fault(index) for index in range(draw.pick(0, 1, 1, 2, 3, 4))]
    count = draw.pick(1, 1, 2, 3) if draw.kills or draw.happens(40) else 0
    archives = Archives(seed, draw.traffic if draw.archives else [], draw.pairs)
    draw.traffic += archives.replays
    events = [*archives.events(), *(draw.event(index) for index in range(count))]
    found: Document = {
        "schema": "windtunnel/1",
        "name": f"random/{seed}",
        "about": f"Seed {seed}.",
        "seeds": {"root": seed + 1},
        "fidelity": ["sim"],
        "network": {"hosts": draw.hosts, "links": draw.links()},
        "archives": archives.archives(),
        "traffic": draw.traffic,
        "faults": faults,
        "events": events,
        "expect": draw.checks(faults),
        "budget": {"wall": "60s"},
    }
    if draw.kills:
        found["timeouts"] = {"image_liveness": "2s", "client_liveness": "3s", "driver": "3s"}
    return {key: value for key, value in found.items() if value != []}


def write(seed: int, folder: Path) -> Path | None:
    """Write the scenario of a seed without what validation refuses. Returns None if it refuses more
    than rules, events and checks.
    """
    drawn, path = document(seed), folder / f"random-{seed}.yaml"
    refused: list[Problem] = []

    def find(scenario: Scenario) -> list[Problem]:
        refused[:] = problems(scenario)
        return refused

    while True:
        path.write_text(yaml.safe_dump(drawn, sort_keys=False))
        try:
            load_scenario(path, find)
        except ScenarioError:
            kinds = {each.path[0] for each in refused if len(each.path) > 1}
            if not refused or not kinds <= {"faults", "events", "expect"}:
                return None
            for kind in map(str, kinds):
                gone = {each.path[1] for each in refused if each.path[0] == kind}
                left = [each for at, each in enumerate(drawn[kind]) if at not in gone]
                drawn[kind] = left
                if not left:
                    del drawn[kind]
        else:
            return path


def wrong(result: RunSummary) -> str:
    """Return the reason of a verdict that a sound driver does not deserve, or an empty string. A
    run may be INCONCLUSIVE: rules may have too few frames to estimate their shares.
    """
    is_fair = result.outcome in ("PASS", "INCONCLUSIVE") or FAULT_OF_SCENARIO in result.reason
    return "" if is_fair else f"{result.outcome}: {result.reason}"
