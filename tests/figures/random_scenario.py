"""Random scenarios of one stream, chosen by a seed, for the comparison of printed figures."""

from random import Random
from typing import Any

import yaml

from tests.figures.account import GROUP, MDC, UNICAST

GROUP_ADDRESS = "224.20.30.39"
ACTS: dict[str, tuple[dict[str, Any], ...]] = {
    "drop": ({"drop": "1%"}, {"drop": "8%"}, {"drop": {"good_to_bad": "1%", "bad_to_good": "30%"}}),
    "copy": ({"duplicate": "3%"}, {"duplicate": {"share": "2%", "copies": 2}}),
    "swap": ({"swap": "3%"},),
    "displace": ({"displace": {"share": "2%", "by": 5}},),
    "hold": ({"hold": {"share": "2%", "for": "3ms"}},),
}


def random_document(seed: int, fidelity: str = "sim") -> dict[str, Any]:
    """Return the scenario that this seed chooses, as a document."""
    choice = Random(seed)
    kind = choice.choice((UNICAST, UNICAST, GROUP, MDC))
    readers = ["b"] if kind == UNICAST else ["b", "c", "d"][: choice.randint(2, 3)]
    reliable = kind != UNICAST or choice.random() < 0.6
    term = choice.choice(("64k", "128k", "1m"))
    message = choice.choice(("64B", "1000B", "1316B", "4000B"))
    delay = choice.choice(("100us", "1ms", "10ms"))
    document: dict[str, Any] = {
        "schema": "windtunnel/1",
        "name": "figures/random",
        "about": "A random stream whose printed figures are compared with the records of the run.",
        "seeds": {"root": seed},
        "fidelity": [fidelity],
        "network": {
            "hosts": ["a", *readers],
            "links": [
                {"between": ["a", each], "impairments": {"both": {"delay": {"mean": delay}}}}
                for each in readers
            ],
        },
        "traffic": [_stream(kind, readers, reliable, term, message, choice)],
        "faults": _faults(choice),
        "expect": ["delivered_intact" if reliable is False else "delivered_once"],
        "budget": {"wall": "60s"},
    }
    return document


def _stream(
    kind: str, readers: list[str], reliable: bool, term: str, message: str, choice: Random
) -> dict[str, Any]:
    settings = f"term-length={term}|mtu=1408"
    if kind == GROUP:
        address = f"endpoint={GROUP_ADDRESS}:24325|interface=${{self}}"
        channel = f"aeron:udp?{address}|fc=min,g:/{len(readers)}|{settings}"
        receive = f"aeron:udp?{address}"
    elif kind == MDC:
        control = "control-mode=dynamic|control=${a}:24324"
        channel = f"aeron:udp?{control}|fc=min,g:/{len(readers)}|{settings}"
        receive = f"aeron:udp?endpoint=${{self}}:24325|{control}"
    else:
        channel = f"aeron:udp?endpoint=${{b}}:24325|{settings}"
        receive = "aeron:udp?endpoint=${b}:24325" + ("" if reliable else "|reliable=false")
    length = choice.choice(("64KiB", "192KiB", "512KiB"))
    content: dict[str, Any] = {"bytes": length, "message": {"from": message, "to": message}}
    if choice.random() < 0.7:
        content["pace"] = {"rate": choice.choice(("256KiB/s", "1MiB/s", "4MiB/s"))}
    return {
        "id": "made",
        "stream": 1001,
        "from": "a",
        "to": readers[0] if kind == UNICAST else readers,
        "publication": choice.choice(("exclusive", "concurrent")),
        "channel": channel,
        "receive": receive,
        "content": content,
    }


def _faults(choice: Random) -> list[dict[str, Any]]:
    names = choice.sample(sorted(ACTS), choice.randint(0, 3))
    rules = []
    for name in names:
        link = choice.choice(("a->*", "a->b"))
        rule: dict[str, Any] = {
            "id": name,
            "where": {"link": link},
            "what": {"type": ["DATA", "PAD"]},
            "act": choice.choice(ACTS[name]),
        }
        if name != "drop" or choice.random() < 0.5:
            rule["attempt"] = 1
        rules.append(rule)
    if choice.random() < 0.3:
        scope = {"where": {"link": "b->a"}, "what": {"type": ["SM", "NAK"]}}
        rules.append({"id": "feedback-loss", **scope, "act": {"drop": "5%"}})
    return rules


def text_of(document: dict[str, Any]) -> str:
    """Return a scenario as the text of its file."""
    return yaml.safe_dump(document, sort_keys=False)
