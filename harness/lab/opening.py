"""Opens labs, for `async with` and for `with`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from windtunnel.harness.lab.lab import Lab
from windtunnel.harness.lab.options import Drivers, LinkOptions, Observe, Settings, lab_options
from windtunnel.harness.lab.plain import PlainLab
from windtunnel.harness.lab.verdict import Verdict


class LabOpening:
    """A lab that an `async with` or a `with` block opens, and closes at its end."""

    def __init__(
        self, options: Mapping[str, Any], on_verdict: Callable[[Verdict], None] | None = None
    ) -> None:
        self._lab = Lab(options, on_verdict)
        self._plain = PlainLab(self._lab)

    @property
    def unread_verdict(self) -> Verdict | None:
        """The verdict, if the lab was closed and the program has not read it."""
        return self._lab.unread_verdict

    async def __aenter__(self) -> Lab:
        return await self._lab.open()

    async def __aexit__(self, *error: Any) -> None:
        await self._lab.__aexit__(*error)

    def __enter__(self) -> PlainLab:
        return self._plain.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._plain.__exit__(*error)


def open_lab(
    hosts: Sequence[str] = ("a", "b"),
    link: str | Sequence[str] | None = None,
    *,
    links: Mapping[str, LinkOptions] | None = None,
    observe: Observe = (),
    timeouts: Mapping[str, str] | None = None,
    driver: Drivers = "ours",
    drivers: Settings | None = None,
    fidelity: str = "netns",
    name: str = "lab",
    about: str = "",
    seed: int = 0,
    out: str | os.PathLike[str] = "runs",
    folder: str | os.PathLike[str] | None = None,
    **impairments: Unpack[LinkOptions],
) -> LabOpening:
    """Return a lab, to be opened with `async with` (`Lab`) or `with` (`PlainLab`).

    `link` is the only link, such as `a-b`, and the further keywords are its impairments, such as
    `loss="2%"`. `links` has several links, with the impairments of each. `observe` has the streams
    that the verdict judges: tables like those of `observe` in a scenario file, with `stream`,
    `channel`, `from` and `to`, or `"all"` for all that the captures show. `timeouts` are those of
    drivers and clients. `driver` is the media driver of all hosts: `ours`, `pyaeron` for Aeron's C
    driver, `java`, `aeronmd:/path`, or `image:NAME` in containers; or of each host that does not
    have ours: `{"b": "pyaeron"}`.
    `drivers` are settings of the driver on each host, like `drivers` in a scenario file:
    `{"a": {"AERON_SOCKET_SO_RCVBUF": "2m"}}`.
    `fidelity` is `netns`, or `compose` for hosts that are containers. The run folder is created in
    `out`. Programs start in `folder`, by default the current one; in containers, they can only read
    it.
    """
    options = lab_options(
        hosts=hosts,
        link=link,
        links=links,
        impairments=impairments,
        observe=observe,
        timeouts=timeouts,
        driver=driver,
        drivers=drivers,
        fidelity=fidelity,
        name=name,
        about=about,
        seed=seed,
        out=Path(out).resolve(),
        folder=Path(folder or Path.cwd()).resolve(),
        argv=sys.orig_argv,
    )
    return LabOpening(options)
