"""A lab that a program controls without asyncio: the same methods, which return when they are done.

    with open_lab(hosts=["a", "b"], link="a-b", loss="2%") as lab:
        feed = lab.start("a", ["python", "feed.py"], ready="feed started")
        with lab.link("a", "b").partitioned():
            time.sleep(2)
    lab.verdict.assert_passed()

A thread of its own runs the event loop of the lab.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, Unpack

from windtunnel.harness.lab.application import EXITED_WITHIN_S, Application
from windtunnel.harness.lab.lab import WITHIN_S, Counter, Lab
from windtunnel.harness.lab.link import Driver, Link
from windtunnel.harness.lab.options import LinkOptions
from windtunnel.harness.lab.placing import Container
from windtunnel.harness.lab.plain_target import PlainTarget, Run
from windtunnel.harness.lab.verdict import Verdict

_RESULT = TypeVar("_RESULT")


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        """Run a coroutine to its end, and return its result. An exception of this thread, such as
        KeyboardInterrupt, cancels it.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class PlainApplication(PlainTarget):
    """A program on a host. `PlainLab.start` returns it."""

    def __init__(self, run: Run, application: Application) -> None:
        super().__init__(run, application)
        self._application = application
        self.name = application.name
        self.host = application.host
        self.log: Path = application.log

    def exited(self, *, within: float = EXITED_WITHIN_S, code: int | None = None) -> int:
        """Wait until the program has ended by itself, as `Application.exited` does."""
        return int(self._run(self._application.exited(within=within, code=code)))

    def stop(self) -> int:
        """Ask the program to end, wait for that, and return the exit code."""
        return int(self._run(self._application.stop()))

    def log_text(self) -> str:
        """Return what the program has printed so far."""
        return self._application.log_text()


class PlainLink:
    """A link between two hosts. `PlainLab.link` returns it."""

    def __init__(self, run: Run, link: Link) -> None:
        self._run = run
        self._link = link

    def impair(self, *, to: str | None = None, **changes: Unpack[LinkOptions]) -> None:
        """Change some impairments of the link. All others remain; None removes one."""
        self._run(self._link.impair(to=to, **changes))

    def partition(self, *, to: str | None = None) -> None:
        """Lose every packet, until `reconnect` or `heal`."""
        self._run(self._link.partition(to=to))

    def reconnect(self, *, to: str | None = None) -> None:
        """End a partition. The link has the impairments from before it again."""
        self._run(self._link.reconnect(to=to))

    def heal(self, *, to: str | None = None) -> None:
        """Return the link to the impairments with which the lab was opened."""
        self._run(self._link.heal(to=to))

    @contextmanager
    def partitioned(self, *, to: str | None = None) -> Iterator[None]:
        """Partition the link for the duration of a `with` block."""
        self.partition(to=to)
        try:
            yield
        finally:
            self.reconnect(to=to)


class PlainDriver(PlainTarget):
    """The media driver of a host. `PlainLab.driver` returns it."""

    def __init__(self, run: Run, driver: Driver) -> None:
        super().__init__(run, driver)
        self.host = driver.host


class PlainLab:
    """A lab whose methods return when they are done. See `Lab`."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._loop: _Loop | None = None

    def __enter__(self) -> PlainLab:
        self._loop = _Loop()
        try:
            self._loop.run(self._lab.open())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._loop is not None
        try:
            self._run(self._lab.__aexit__(*error))
        finally:
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
        assert self._loop is not None
        return self._loop.run(work)

    @property
    def verdict(self) -> Verdict:
        """The verdict. It is known when the lab has been closed."""
        return self._lab.verdict

    @property
    def run_dir(self) -> Path:
        """The run folder, with the logs and all other evidence."""
        return self._lab.run_dir

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host."""
        return self._lab.address(host)

    def aeron_dir(self, host: str) -> Path:
        """Return the directory of a host's driver, which applications find in `AERON_DIR`."""
        return self._lab.aeron_dir(host)

    def start(
        self,
        host: str,
        command: Sequence[str | os.PathLike[str]] = (),
        *,
        image: str | None = None,
        limits: Mapping[str, Any] | None = None,
        ready: str | None = None,
        within: float = WITHIN_S,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        driver: str = "shared",
        stop_signal: str = "TERM",
        stop_within: float = 10.0,
        exit_code: int | None = None,
        log_never: Sequence[str] = (),
        folder: str | os.PathLike[str] | None = None,
    ) -> PlainApplication:
        """Start a program on a host, and wait until it is ready, as `Lab.start` does."""
        started = self._run(
            self._lab.start(
                host,
                command,
                image=image,
                limits=limits,
                ready=ready,
                within=within,
                env=env,
                name=name,
                driver=driver,
                stop_signal=stop_signal,
                stop_within=stop_within,
                exit_code=exit_code,
                log_never=log_never,
                folder=folder,
            )
        )
        return PlainApplication(self._run, started)

    def link(self, first: str, second: str | None = None) -> PlainLink:
        """Return the link between two hosts."""
        return PlainLink(self._run, self._lab.link(first, second))

    def driver(self, host: str) -> PlainDriver:
        """Return the driver of a host, to pause or kill it."""
        return PlainDriver(self._run, self._lab.driver(host))

    def place(self, host: str, container: Container) -> Container:
        """Place a container of testcontainers on a host, as `Lab.place` does."""
        return self._lab.place(host, container)

    def compose_file(self, services: Mapping[str, str], path: str | os.PathLike[str]) -> Path:
        """Write a compose file that places services on hosts, as `Lab.compose_file` does."""
        return self._lab.compose_file(services, path)

    def counters(self, host: str) -> list[Counter]:
        """Return all counters of a host's driver."""
        return self._run(self._lab.counters(host))

    def wait_for_counter(
        self,
        host: str,
        counter: str,
        *,
        at_least: int,
        stream: int | None = None,
        session: int | None = None,
        within: float = WITHIN_S,
    ) -> int:
        """Wait until a counter has reached a value, as `Lab.wait_for_counter` does."""
        return self._run(
            self._lab.wait_for_counter(
                host, counter, at_least=at_least, stream=stream, session=session, within=within
            )
        )

    def wait_for_position(
        self, host: str, *, stream: int, at_least: int, within: float = WITHIN_S
    ) -> int:
        """Wait until a subscriber on a host has consumed a stream up to a position."""
        return self._run(
            self._lab.wait_for_position(host, stream=stream, at_least=at_least, within=within)
        )

    def status(self) -> dict[str, Any]:
        """Return the present state of links and applications."""
        return self._run(self._lab.status())
