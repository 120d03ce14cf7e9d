"""Replaces the short forms of a scenario file with the full forms that the schema defines.

    message: 1408B                     message: {from: 1408B, to: 1408B}
    messages: 20000                    bytes: 28160000B
    rate: 20000 msg/s                  pace: {rate: 28160000B/s}
    delay: 20ms                        delay: {mean: 20ms}

This happens before the values are validated, so everything else knows only the full forms. Counts
of messages need one message length. Values of a wrong type remain as they are, and the schema
reports them.
"""

from collections.abc import Iterator
from typing import Any

from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.schema.units import (
    format_byte_rate,
    format_bytes,
    is_message_rate,
    parse_bytes,
    parse_message_rate,
)
from windtunnel.harness.scenario.yaml_document import quoted

ALL = "all"
MESSAGES_MAX = 1 << 40
"""Maximum number of messages, as for bytes. `validation` has a lower limit, and explains it."""


def expand(document: Any) -> list[Problem]:
    """Replace the short forms in a scenario's plain values. Returns the problems with them."""
    if not isinstance(document, dict):
        return []
    if document.get("observe") == ALL:
        document["observe_all"] = True
        del document["observe"]
    found: list[Problem] = []
    traffic = _items(document.get("traffic"))
    lengths: dict[object, int | None] = {}
    for index, stream in traffic:
        path: Path = ("traffic", index)
        content = stream.get("content")
        if isinstance(content, dict):
            _expand_message(content)
            length = _message_length(content)
            lengths[_id_of(stream)] = length
            found += _expand_content(content, length, (*path, "content"))
    for index, stream in traffic:
        origin = _id_of(stream) if "content" in stream else str(stream.get("replays"))
        path = ("traffic", index, "consume")
        found += _expand_rate(stream.get("consume"), lengths.get(origin), path)
    _expand_delays(document)
    return found


def _items(value: object) -> list[tuple[int, dict[str, Any]]]:
    """Return the tables in a list with their indices."""
    items = value if isinstance(value, list) else []
    return [(index, each) for index, each in enumerate(items) if isinstance(each, dict)]


def _id_of(stream: dict[str, Any]) -> str:
    return str(stream.get("id"))


def _expand_message(content: dict[str, Any]) -> None:
    if isinstance(content.get("message"), str):
        content["message"] = {"from": content["message"], "to": content["message"]}


def _message_length(content: dict[str, Any]) -> int | None:
    """Return the length of all messages in bytes, or None if they differ in length or the length is
    invalid.
    """
    message = content.get("message")
    if not isinstance(message, dict):
        return None
    try:
        shortest, longest = (parse_bytes(message.get(key)) for key in ("from", "to"))
    except ValueError:
        return None  # The schema reports it, unless it is absent or `max`.
    return shortest if shortest == longest else None


def _expand_content(content: dict[str, Any], length: int | None, path: Path) -> Iterator[Problem]:
    if "messages" in content:
        yield from _expand_messages(content, length, path)
    if "rate" in content:
        rate = content.pop("rate")
        if "pace" in content:
            text = "expected `rate` or `pace`, found both: write the rate in `pace`"
            yield Problem((*path, "rate"), text)
            return
        content["pace"] = {"rate": rate}
        yield from _expand_rate(content["pace"], length, path)
        return
    yield from _expand_rate(content.get("pace"), length, (*path, "pace"))


def _expand_messages(content: dict[str, Any], length: int | None, path: Path) -> Iterator[Problem]:
    count = content.pop("messages")
    path = (*path, "messages")
    if type(count) is not int or not 1 <= count <= MESSAGES_MAX:
        text = f"expected a number of messages from 1 to {MESSAGES_MAX}, such as 20000"
        yield Problem(path, f"{text}, found {quoted(count)}")
    elif "bytes" in content:
        yield Problem(path, "expected `bytes` or `messages`, found both: remove one of them")
    elif length is None:
        text = "expected one message length, such as `message: 1KiB`"
        yield Problem(path, f"{text}: write it, or `bytes` in place of `messages`")
    else:
        content["bytes"] = format_bytes(count * length)
        return
    content.setdefault("bytes", "1B")  # The problem is reported already.


def _expand_rate(pace: object, length: int | None, path: Path) -> Iterator[Problem]:
    """Convert a pace's rate in messages per second to bytes per second."""
    if not isinstance(pace, dict) or not is_message_rate(pace.get("rate")):
        return
    text, path = pace["rate"], (*path, "rate")
    pace["rate"] = format_byte_rate(1)
    try:
        messages_per_s = parse_message_rate(text)
    except ValueError as error:
        yield Problem(path, str(error))
        return
    if length is None:
        text = "a rate in messages needs one message length, such as `message: 1KiB`"
        yield Problem(path, f"{text}: write it, or a rate such as 20MiB/s")
        return
    pace["rate"] = format_byte_rate(messages_per_s * length)


def _expand_delays(document: dict[str, Any]) -> None:
    """Expand the delays of links, and of events and a nemesis that impair links."""
    network = document.get("network")
    network = network if isinstance(network, dict) else {}
    tables: list[object] = []
    for each in (*(each for _, each in _items(network.get("links"))), network.get("link")):
        impairments = each.get("impairments") if isinstance(each, dict) else None
        tables += impairments.values() if isinstance(impairments, dict) else ()
    acts = [event.get("act") for _, event in _items(document.get("events"))]
    tables += [act.get("impair") for act in acts if isinstance(act, dict)]
    nemesis = document.get("nemesis")
    drawn = nemesis.get("impair") if isinstance(nemesis, dict) else None
    tables += drawn if isinstance(drawn, list) else [drawn]
    for table in tables:
        if isinstance(table, dict) and isinstance(table.get("delay"), str):
            table["delay"] = {"mean": table["delay"]}
