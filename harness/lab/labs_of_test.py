"""The labs of one test: what the fixture `windtunnel` gives to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from windtunnel.harness.lab.opening import LabOpening
from windtunnel.harness.lab.options import Drivers, LinkOptions, Observe, Settings, lab_options
from windtunnel.harness.lab.verdict import Verdict


class Windtunnel:
    """Opens labs for a test, and knows their verdicts."""

    def __init__(
        self,
        *,
        test: str,
        name: str,
        folder: Path,
        out: Path,
        seed: int | None,
        driver: str,
        fidelity: str,
        on_verdict: Callable[[Verdict], None],
    ) -> None:
        self._test = test
        self._name = name
        self._folder = folder
        self._out = out
        self._seed = seed
        self._driver = driver
        self._fidelity = fidelity
        self._on_verdict = on_verdict
        self._openings: list[LabOpening] = []

    def unread_failures(self) -> list[Verdict]:
        """Return the verdicts that did not pass, and that the test has not read."""
        found = [each.unread_verdict for each in self._openings]
        return [each for each in found if each is not None and not each.passed]

    def lab(
        self,
        hosts: Sequence[str] = ("a", "b"),
        link: str | Sequence[str] | None = None,
        *,
        links: Mapping[str, LinkOptions] | None = None,
        observe: Observe = (),
        timeouts: Mapping[str, str] | None = None,
        driver: Drivers | None = None,
        drivers: Settings | None = None,
        name: str | None = None,
        about: str = "",
        seed: int = 0,
        folder: str | os.PathLike[str] | None = None,
        **impairments: Unpack[LinkOptions],
    ) -> LabOpening:
        """Return a lab for `async with` or `with`, as `open_lab` does.

        Its name is that of the test, and its programs start in the folder of the test's file.
        `--windtunnel-seed` takes precedence over `seed`, and `driver` over `--windtunnel-driver`.
        """
        options = lab_options(
            hosts=hosts,
            link=link,
            links=links,
            impairments=impairments,
            observe=observe,
            timeouts=timeouts,
            driver=driver or self._driver,
            drivers=drivers,
            default_driver=self._driver,
            fidelity=self._fidelity,
            name=name or self._name,
            about=about or f"A lab of the test {self._test}.",
            seed=seed if self._seed is None else self._seed,
            out=self._out,
            folder=Path(folder or self._folder).resolve(),
            argv=["python", "-m", "pytest", self._test],
        )
        opening = LabOpening(options, self._on_verdict)
        self._openings.append(opening)
        return opening
