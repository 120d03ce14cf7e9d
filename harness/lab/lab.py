"""A lab that a program controls, with asyncio.

async with open_lab(hosts=["a", "b"], link="a-b", delay="20ms", loss="2%") as lab:
    feed = await lab.start("a", ["python", "feed.py"], ready="feed started")
    async with lab.link("a", "b").partitioned():
        await asyncio.sleep(2)
    await feed.stop()
lab.verdict.assert_passed()
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from windtunnel.harness.lab.application import Application
from windtunnel.harness.lab.connection import Connection
from windtunnel.harness.lab.errors import LabError
from windtunnel.harness.lab.link import Driver, Link
from windtunnel.harness.lab.options import link_ends, listed
from windtunnel.harness.lab.placing import Container, Place, compose_text, place
from windtunnel.harness.lab.verdict import Verdict, read_verdict

WITHIN_S = 20.0
"""Default time limit of all waits, in seconds."""
SUBSCRIBER_POSITION = "sub-pos"


@dataclass(frozen=True)
class Counter:
    """A counter of a driver."""

    label: str
    value: int
    stream: int | None = None
    session: int | None = None


class Lab:
    """A lab: hosts with a driver each, links between them, and the programs that run there.

    It is open from the beginning of its `async with` block to the block's end, which takes it down
    and judges the run.
    """

    def __init__(
        self, options: Mapping[str, Any], on_verdict: Callable[[Verdict], None] | None = None
    ) -> None:
        self._options = dict(options)
        self._connection = Connection()
        self._description: dict[str, Any] = {}
        self._verdict: Verdict | None = None
        self._is_read = False
        self._on_verdict = on_verdict

    async def open(self) -> Lab:
        """Build the lab. Raises LabError if that is not possible. `async with` calls it."""
        try:
            self._description = await self._connection.open(self._options)
        except BaseException:
            await self._connection.close()
            raise
        return self

    async def close(self) -> Verdict:
        """End all programs, take the lab down, judge the run, and return the verdict. `async with`
        calls it.
        """
        if self._verdict is None:
            try:
                end = await self._connection.end()
            finally:
                await self._connection.close()
            report = Path(end["report"]) if "report" in end else None
            run_dir = Path(end["run_dir"])
            self._verdict = read_verdict(run_dir, end["outcome"], end["reason"], report)
            if self._on_verdict is not None:
                self._on_verdict(self._verdict)
        return self._verdict

    async def __aenter__(self) -> Lab:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            verdict = await self.close()
        except LabError as closing:
            if error is None:
                raise
            error.add_note(f"the lab could not be closed: {closing}")
            return
        if error is not None:
            self._is_read = True
            error.add_note(f"verdict of the lab: {verdict.text}")

    # ---- facts ----

    @property
    def verdict(self) -> Verdict:
        """The verdict. It is known when the lab has been closed."""
        if self._verdict is None:
            raise LabError("there is no verdict before the lab is closed: read it after `with`")
        self._is_read = True
        return self._verdict

    @property
    def unread_verdict(self) -> Verdict | None:
        """The verdict, if it is known and the program has not read it."""
        return None if self._is_read else self._verdict

    @property
    def run_dir(self) -> Path:
        """The run folder, with the logs and all other evidence."""
        return Path(self._known("run_dir"))

    def address(self, host: str) -> str:
        """Return the IPv4 address of a host."""
        return str(self._of_host("addresses", host))

    def aeron_dir(self, host: str) -> Path:
        """Return the directory of a host's driver, which applications find in `AERON_DIR`."""
        return Path(self._of_host("aeron_dirs", host))

    def _known(self, key: str) -> Any:
        if not self._description:
            raise LabError("the lab is not open: use it in an `async with` or `with` block")
        return self._description[key]

    def _of_host(self, key: str, host: str) -> Any:
        known = self._known(key)
        if host not in known:
            raise LabError(f"there is no host {host!r}: the hosts are {', '.join(known)}")
        return known[host]

    # ---- programs, links and drivers ----

    async def start(
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
    ) -> Application:
        """Start a program on a host, and wait until it is ready.

        `ready` is a text in the line of its log that shows that it is ready; without it, nothing is
        waited for. In the command and in the values of `env`, `${b}` is the address of host b. The
        working folder is the test's, or the current one. `driver` is `shared`, `embedded` or
        `none`. The verdict is FAIL if the program ends with another exit code than 0, or
        `exit_code`, or if its log has a text of `log_never`. In containers, `image` is its image,
        whose own command is used if none is given, and `limits` has `memory`, `cpus` and
        `processes`, as in a scenario file.
        """
        table: dict[str, Any] = {
            "on": host,
            "command": [os.fspath(each) for each in listed("command", command)],
            "env": dict(env or {}),
            "driver": driver,
            "stop": {"signal": stop_signal, "within": _seconds(stop_within)},
            "expect": {"log_never": listed("log_never", log_never)},
        }
        if image is not None:
            table["image"] = image
        if limits is not None:
            table["limits"] = dict(limits)
        if ready is not None:
            table["ready"] = {"log": ready, "within": _seconds(within)}
        if exit_code is not None:
            table["expect"]["exit"] = exit_code
        where = Path(folder) if folder is not None else Path(self._options["folder"])
        found = await self._connection.request(
            "start", name=name, folder=str(where), variables=_search_path(), **table
        )
        return Application(self._connection, found["application"], host, Path(found["log"]))

    def link(self, first: str, second: str | None = None) -> Link:
        """Return the link between two hosts: `lab.link("a", "b")` or `lab.link("a-b")`."""
        ends = first if second is None else (first, second)
        return Link(self._connection, link_ends(self._options["hosts"], ends))

    def driver(self, host: str) -> Driver:
        """Return the driver of a host, to pause or kill it."""
        self._of_host("addresses", host)
        return Driver(self._connection, host)

    def place(self, host: str, container: Container) -> Container:
        """Place a container of testcontainers on a host, before it is started, and return it.

        It shares the network and the memory of the host, and finds the host's driver in
        `AERON_DIR`. In the values of its variables, `${b}` is the address of host b. Only in a lab
        with `fidelity="compose"`.
        """
        return place(container, self._place(host))

    def compose_file(self, services: Mapping[str, str], path: str | os.PathLike[str]) -> Path:
        """Write a compose file that places services on hosts, and return its path: `{"feed": "a"}`.

        It is used after your own file: `docker compose -f yours.yaml -f PATH up`, or
        `DockerCompose(folder, compose_file_name=["yours.yaml", PATH])`. The services find the
        host's driver in `AERON_DIR`, and the address of host b in `WT_ADDRESS_B`. Only in a lab
        with `fidelity="compose"`.
        """
        places = {service: self._place(host) for service, host in services.items()}
        written = Path(path)
        written.write_text(compose_text(places))
        return written

    def _place(self, host: str) -> Place:
        self._of_host("addresses", host)
        if "places" not in self._description:
            raise LabError('the hosts are not containers: open the lab with fidelity="compose"')
        found = self._description["places"][host]
        return Place(host, **found, addresses=self._known("addresses"))

    # ---- counters ----

    async def counters(self, host: str) -> list[Counter]:
        """Return all counters of a host's driver."""
        found = await self._connection.request("counters", host=host)
        return [
            Counter(each["label"], each["value"], each.get("stream"), each.get("session"))
            for each in found["counters"]
        ]

    async def wait_for_counter(
        self,
        host: str,
        counter: str,
        *,
        at_least: int,
        stream: int | None = None,
        session: int | None = None,
        within: float = WITHIN_S,
    ) -> int:
        """Wait until a counter of a host's driver has reached a value, and return the value.

        `counter` is the beginning of its label, such as `rcv-hwm` or `Bytes sent`. If there are
        several, the largest counts. Raises LabError if that takes longer than `within` seconds.
        """
        found = await self._connection.request(
            "counter",
            host=host,
            counter=counter,
            at_least=at_least,
            stream=stream,
            session=session,
            within=within,
        )
        return int(found["value"])

    async def wait_for_position(
        self, host: str, *, stream: int, at_least: int, within: float = WITHIN_S
    ) -> int:
        """Wait until a subscriber on a host has consumed a stream up to a position, and return its
        position.
        """
        return await self.wait_for_counter(
            host, SUBSCRIBER_POSITION, at_least=at_least, stream=stream, within=within
        )

    async def status(self) -> dict[str, Any]:
        """Return the present state of links and applications."""
        return await self._connection.request("status")


def _seconds(value: float) -> str:
    """Return a time in seconds as scenario files have it."""
    return f"{round(value * 1000)}ms"


def _search_path() -> dict[str, str]:
    """Return the variable because of which `python` is the interpreter of this program."""
    own = str(Path(sys.executable).parent)
    return {"PATH": os.pathsep.join([own, *filter(None, [os.environ.get("PATH")])])}
