"""The parameters of a resolved case as texts, by name, so that two cases can be compared.

    seed                               7
    traffic.feed.receive.rcv-wnd       352k
    impairments.lon->nyc.delay             30ms

A parameter that has its default, or that follows from another one, has no entry. Addresses differ
in each run, so the names of the hosts take their place.
"""

import re
from collections.abc import Iterator
from typing import Any

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import (
    format_byte_rate,
    format_bytes,
    format_duration,
    format_rate,
    format_share,
)

PRESENT = "yes"
"""Value of an item without parameters, such as a check without arguments."""
_LEFT_OUT = ("schema", "about", "hosts", "payload")
"""Keys of a case that are not parameters, or that `case_parameters` adds in another form."""
_DERIVED = (
    *("ordinal", "port", "ports", "reliable", "term_length", "mtu", "initial_term_id"),
    *("initial_position", "receiver_window_bytes", "session_id", "session_port"),
    *("session_span_ns", "observed", "found"),
)
"""Keys of a stream that follow from its channels, or from the other streams."""
_SINGULAR = {
    **{"from_host": "from_hosts", "to_host": "to_hosts"},
    **{"channel": "channels", "receive": "receives"},
}
"""Keys of a stream that repeat the first of several values, which are in another key."""
_KEYS = ("id", "name", "link", "host")
"""Keys that identify an item of a list."""
_UNITS = (
    ("bytes_per_s", "rate", format_byte_rate),
    ("rate_bits_per_s", "rate", format_rate),
    ("_ns", "", format_duration),
    ("_bytes", "", format_bytes),
    ("_ppb", "", format_share),
)
"""Endings of keys that name a unit, what replaces them, and the function that formats a value."""
_CHANNEL = "aeron:udp?"


def case_parameters(case: Case) -> dict[str, str]:
    """Return the parameters of a case by name."""
    document = case.model_dump(by_alias=True, exclude_defaults=True)
    for key in _LEFT_OUT:
        document.pop(key, None)
    for each in document.get("impairments", ()):
        (each["link"],) = case.hosts_of_links([each["link"]])
    for each in document["faults"]:
        each["links"] = case.hosts_of_links(each["links"])
    for each in document["expect"]:
        each |= each.pop("arguments")
    for each in document.get("links", ()):
        each["name"] = " and ".join(each.pop("between"))
    for each in (*document["traffic"], *document.get("observed", ())):
        for key in _DERIVED:
            each.pop(key, None)
        for key, several in _SINGULAR.items():
            if each.get(several):
                each.pop(key)
    for each in document.get("events", ()):
        trigger, at = each.pop("trigger"), each.pop("at")
        each["when"] = (
            f"{trigger} {format_duration(at) if trigger == 'after' else format_bytes(at)}"
        )
    found = {"scenario": document.pop("name"), "hosts": ", ".join(each.name for each in case.hosts)}
    found |= {name: _named_hosts(case, text) for name, text in _leaves("", document)}
    if case.payload.sha256:
        found["payload.sha256"] = case.payload.sha256[:12]
    return found


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each value in a document, with its unit."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(f"{path}.{key}" if path else key, each)
    elif isinstance(value, list | tuple):
        yield from _items(path, value)
    elif isinstance(value, str) and value.startswith(_CHANNEL):
        for part in value.removeprefix(_CHANNEL).split("|"):
            name, _, text = part.partition("=")
            yield f"{path}.{name}", text
    else:
        yield _scalars(path, (value,))


def _items(path: str, items: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    if not any(isinstance(each, dict | list | tuple) for each in items):
        if items:
            yield _scalars(path, items)
        return
    for index, each in enumerate(items):
        if isinstance(each, dict):
            key = next((key for key in _KEYS if key in each), "")
            name = str(each[key]) if key else str(index)
            rest = {other: value for other, value in each.items() if other != key}
            leaves = list(_leaves(f"{path}.{name}", rest))
            yield from leaves or [(f"{path}.{name}", PRESENT)]
        elif len(each) == 2 and isinstance(each[0], str):
            yield from _leaves(f"{path}.{each[0]}", each[1])
        else:
            yield _scalars(f"{path}.{index}", each)


def _scalars(path: str, values: list[Any] | tuple[Any, ...]) -> tuple[str, str]:
    """Return the name of a key without its unit, and its values with it."""
    for ending, name, text_of in _UNITS:
        if path.endswith(ending) and all(type(each) is int for each in values):
            return path.removesuffix(ending) + name, ", ".join(map(text_of, values))
    return path, ", ".join(PRESENT if each is True else str(each) for each in values)


def _named_hosts(case: Case, text: str) -> str:
    for each in case.hosts:
        text = re.sub(rf"(?<![\d.]){re.escape(each.address)}(?![\d.])", f"${{{each.name}}}", text)
    return text
