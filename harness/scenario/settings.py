"""Sets single values of a scenario, such as `loss=5%` or `applications.feed.env.RATE=100`.

    loss                          impairments of all links, in both directions
    applications.feed.env.RATE    keys of tables, ids of the items of a list

`windtunnel run --set` and `sweep` use the same names.
"""

import re
from collections.abc import Iterator
from typing import Any

from windtunnel.harness.scenario.schema.impairment import Impairments
from windtunnel.harness.scenario.schema.problem import Path, Problem
from windtunnel.harness.scenario.yaml_document import Mark, YamlDocument, current_key, quoted

IMPAIRMENTS = tuple(field.alias or name for name, field in Impairments.model_fields.items())
"""Names of impairments, which need no path."""
BOTH = "both"
NAME = re.compile(r"[^.\s=\x00-\x1f]{1,100}(\.[^.\s=\x00-\x1f]{1,100}){0,11}")
FIXED = ("schema", "name", "extends", "sweep")
"""Keys that cannot be set."""


def set_value(
    document: YamlDocument, name: str, value: Any, mark: Mark, source: str
) -> list[Problem]:
    """Set a value of a scenario's document. `mark` and `source` say where it is written. Returns
    the problems, if the name is not that of a value.
    """
    if name in IMPAIRMENTS:
        paths = list(_impairment_paths(document.value, name))
        if not paths:
            return [Problem((), f"cannot set {name}: the scenario has no link")]
    elif not NAME.fullmatch(name) or name.split(".")[0] in FIXED:
        known = ", ".join(IMPAIRMENTS)
        text = f"expected an impairment ({known}), or a path such as `applications.feed.env.RATE`"
        return [Problem((), f"{text}, found {quoted(name)}")]
    else:
        paths = [tuple(name.split("."))]
    found = []
    for path in paths:
        place: Path = ()
        table = document.value
        for step in path[:-1]:
            table, place, problem = _entered(table, place, current_key(place, step))
            if problem:
                return [Problem((), f"cannot set {name}: {problem}")]
        if not isinstance(table, dict):
            return [Problem((), f"cannot set {name}: {_dotted(place)} is not a table")]
        table[path[-1]] = value
        found.append((*place, path[-1]))
    for where in found:
        for old in [each for each in document.marks if each[: len(where)] == where]:
            del document.marks[old]
        for length in range(1, len(where) + 1):
            if where[:length] not in document.marks:
                document.marks[where[:length]] = mark
                document.sources[where[:length]] = source
    return []


def _entered(table: Any, place: Path, step: str) -> tuple[Any, Path, str]:
    """Return the table or list with a key or id, its path, and a problem or an empty string. A
    table that does not exist is created.
    """
    if isinstance(table, dict):
        return table.setdefault(step, {}), (*place, step), ""
    items = table if isinstance(table, list) else []
    for index, each in enumerate(items):
        if isinstance(each, dict) and str(each.get("id")) == step:
            return each, (*place, index), ""
    if step.isdecimal() and int(step) < len(items):
        return items[int(step)], (*place, int(step)), ""
    return None, place, f"{_dotted(place)} has no item with the id {step}"


def _impairment_paths(value: Any, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths of an impairment in all directions of all links."""
    network = value.get("network") if isinstance(value, dict) else None
    network = network if isinstance(network, dict) else {}
    links = network.get("links")
    found: list[tuple[tuple[str, ...], Any]] = [(("link",), network.get("link"))]
    found += [(("links", str(at)), each) for at, each in enumerate(links or [])]
    for path, link in found:
        if not isinstance(link, dict):
            continue
        given = link.get("impairments")
        directions = list(given) if isinstance(given, dict) and given else [BOTH]
        if directions != [BOTH] and len(directions) < len(("a->b", "b->a")):
            # One direction has impairments. The other shall have this one, too.
            directions += [_reverse(directions[0])]
        yield from (("network", *path, "impairments", each, name) for each in directions)


def _reverse(direction: str) -> str:
    first, _, second = direction.partition("->")
    return f"{second}->{first}"


def _dotted(place: Path) -> str:
    return ".".join(map(str, place)) or "the scenario"
