"""The options with which a program opens a lab, and the impairments of a link."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar

from windtunnel.harness.lab.errors import LabError

NAME_LENGTH_MAX = 80
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


Drivers = str | Mapping[str, str]
"""The driver of all hosts, or of each host: `pyaeron`, or `{"a": "pyaeron"}`."""
Settings = Mapping[str, Mapping[str, Any]]
"""Settings of the driver on each host, by the names of Aeron's environment variables."""
OURS = "ours"
_Text = TypeVar("_Text")
Observe = Sequence[Mapping[str, Any]] | Literal["all"]
"""The streams that the verdict judges: tables, or all that the captures show."""


class LinkOptions(TypedDict, total=False):
    """The impairments of a link, with their values in a scenario file. None removes one."""

    loss: str | Mapping[str, Any] | None
    """Share of the packets that are lost, such as `2%`, or a table that describes bursts."""

    delay: str | Mapping[str, Any] | None
    """Delay, such as `20ms`, or a table with `mean`, `jitter` and `distribution`."""

    rate: str | None
    """Rate limit, such as `100Mbit/s`."""

    queue: int | None
    """Length of the queue of a link with a rate limit, in packets."""

    duplicate: str | None
    """Share of the packets that are duplicated."""

    corrupt: str | None
    """Share of the packets in which a bit is changed."""

    reorder: Mapping[str, Any] | None
    """Reordering: a table with `share` and `gap`."""


def lab_options(
    *,
    hosts: Sequence[str],
    link: str | Sequence[str] | None,
    links: Mapping[str, LinkOptions] | None,
    impairments: LinkOptions,
    observe: Observe,
    timeouts: Mapping[str, str] | None,
    driver: Drivers,
    drivers: Settings | None,
    fidelity: str,
    name: str,
    about: str,
    seed: int,
    out: Path,
    folder: Path,
    argv: Sequence[str],
    default_driver: str = OURS,
) -> dict[str, Any]:
    """Return the options of a lab as its process expects them. Raises LabError for a link that
    cannot be understood; the process checks everything else.
    """
    names = listed("hosts", hosts)
    if links is not None and (link is not None or impairments):
        raise LabError("expected either links, or link with its impairments")
    if links is None:
        ends = link if link is not None else names
        found = [_link(names, ends, impairments)]
    else:
        found = [_link(names, ends, options) for ends, options in links.items()]
    return {
        "name": scenario_name(name),
        "about": about,
        "seed": seed,
        "hosts": names,
        "links": found,
        "observe": observe
        if isinstance(observe, str)
        else [{"id": f"stream-{index + 1}", **each} for index, each in enumerate(observe)],
        "timeouts": dict(timeouts or {}),
        "driver": _driver_of_each(names, driver, default_driver),
        "drivers": {host: dict(settings) for host, settings in (drivers or {}).items()},
        "fidelity": fidelity,
        "out": str(out),
        "folder": str(folder),
        "argv": list(argv),
    }


def listed(key: str, texts: Sequence[_Text]) -> list[_Text]:
    """Return a sequence of texts as a list. Raises LabError for a single text, whose characters
    would be taken for the texts.
    """
    if isinstance(texts, str | bytes | os.PathLike):
        raise LabError(f"{key}: expected a list such as [{str(texts)!r}], found {texts!r}")
    return list(texts)


def _driver_of_each(hosts: Sequence[str], driver: Drivers, default: str) -> dict[str, str]:
    """Return the name of each host's driver."""
    if isinstance(driver, str):
        return dict.fromkeys(hosts, driver)
    for host in driver:
        if host not in hosts:
            raise LabError(f"driver: expected one of the hosts {', '.join(hosts)}, found {host!r}")
    return {host: driver.get(host, default) for host in hosts}


def _link(
    hosts: Sequence[str], ends: str | Sequence[str], impairments: Mapping[str, Any]
) -> dict[str, Any]:
    between = link_ends(hosts, ends)
    given = {key: value for key, value in impairments.items() if value is not None}
    return {"between": between, **({"impairments": {"both": given}} if given else {})}


def link_ends(hosts: Sequence[str], ends: str | Sequence[str]) -> list[str]:
    """Return the two hosts of a link such as `a-b`. The names of hosts may contain hyphens."""
    if not isinstance(ends, str):
        if len(ends) != 2:
            raise LabError(f"link: expected two hosts, such as 'a-b', found {', '.join(ends)}")
        return list(ends)
    words = ends.split("-")
    for index in range(1, len(words)):
        pair = ["-".join(words[:index]), "-".join(words[index:])]
        if all(each in hosts for each in pair):
            return pair
    known = ", ".join(hosts)
    raise LabError(f"link: expected two of the hosts {known}, such as 'a-b', found {ends!r}")


def scenario_name(text: str) -> str:
    """Return a text as the name of a scenario, such as `lab/test-feed-survives`."""
    parts = [_NOT_IN_NAMES.sub("-", part.lower()).strip("-") for part in text.split("/")]
    name = "/".join(part for part in parts if part)[:NAME_LENGTH_MAX].strip("-/")
    return name or "lab"
