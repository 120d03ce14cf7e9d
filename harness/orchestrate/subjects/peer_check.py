"""Tests the contract of an image whose driver is a peer, step by step, up to the first broken one.

    image --> start --> cnc --> heartbeat --> environment --> stop        host a of a lab
                                                    not-supported         host b, another container

The image runs as in a run, next to the container of a host, whose program `cnc_watch` reads the
driver's cnc.dat. What the image writes is data; no file of it is opened on this machine, except for
its log, whose length is limited.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from windtunnel.harness.capture.cnc_watch import CncSight
from windtunnel.harness.orchestrate.fidelity import COMPOSE
from windtunnel.harness.orchestrate.lab import ContainerLab, Lab, LabApplication
from windtunnel.harness.orchestrate.labs import labs
from windtunnel.harness.orchestrate.processes.watch import POLL_S, WatchedProcess
from windtunnel.harness.orchestrate.subjects import image_contract, peers
from windtunnel.harness.orchestrate.subjects.subject import UNSUPPORTED_EXIT_CODE
from windtunnel.harness.topology import model as topology
from windtunnel.harness.verdict.core.exit_codes import ORDERLY_EXIT_CODES

Outcome = Literal["kept", "broken", "not tested"]
START_WITHIN_S = 30.0
HEARTBEAT_WITHIN_S = 10.0
"""Time within which the heartbeat must advance: clients give a driver up after this time."""
STOP_WITHIN_S = 10.0
SCENARIO = "peer/check"
CLIENT_LIVENESS = "AERON_CLIENT_LIVENESS_TIMEOUT"
CLIENT_LIVENESS_S = 7
"""A value that no driver has by default, in cnc.dat for all to see."""
CNC_MINOR_MIN = 2
HOSTS = ("a", "b")
LOG_LINES = 3
LOG_BYTES_MAX = 4 << 20
"""Maximum length of the log of a check, which is much shorter than a run."""
NS_PER_S, MS_PER_S = 1_000_000_000, 1_000


@dataclass(frozen=True)
class Promise:
    """A promise of the contract, and what to do if an image breaks it."""

    step: str
    expected: str
    advice: str


PROMISES = (
    Promise("image", "the image is on this machine", "build it, or use `docker pull`"),
    Promise(
        "start",
        "it starts a driver, which runs until it is asked to end",
        f"run it with {image_contract.VERSION_VARIABLE}={image_contract.VERSION}, and read its log",
    ),
    Promise(
        "cnc",
        f"it writes a cnc.dat of version 0.{CNC_MINOR_MIN} in the folder that AERON_DIR names",
        "let the driver use AERON_DIR as it is, and check which version of Aeron it is",
    ),
    Promise(
        "heartbeat",
        f"the heartbeat in cnc.dat is the time, and advances within {HEARTBEAT_WITHIN_S:g} s",
        "let the driver's conductor run, with the clock of this machine",
    ),
    Promise(
        "environment",
        f"{CLIENT_LIVENESS}={CLIENT_LIVENESS_S}s is in cnc.dat",
        "let the driver read its settings from the variables AERON_*",
    ),
    Promise(
        "stop",
        f"it ends within {STOP_WITHIN_S:g} s of SIGTERM, with exit code 0 or 143",
        "start the driver with `exec`, so that it receives the signal itself",
    ),
    Promise(
        "not-supported",
        f"it ends with exit code {UNSUPPORTED_EXIT_CODE} if {image_contract.VERSION_VARIABLE} is "
        "a version that it does not know",
        f'begin its start script with [ "${image_contract.VERSION_VARIABLE}" = '
        f"{image_contract.VERSION} ] || exit {UNSUPPORTED_EXIT_CODE}",
    ),
)


@dataclass(frozen=True)
class Step:
    """The outcome of a step."""

    promise: Promise
    outcome: Outcome
    found: str = ""


class Broken(Exception):
    """Raised if an image breaks a promise. The message is what was found."""

    def __init__(self, step: str, found: str) -> None:
        super().__init__(found)
        self.step = step


def check(image: str, folder: Path, within_s: float = START_WITHIN_S) -> list[Step]:
    """Test an image, and return the outcome of all steps, in order. Steps after the first broken
    one are not tested.

    `folder` is an empty folder for logs. Raises LabError without a usable container engine.
    """
    try:
        _require_kept(image, folder, within_s)
    except Broken as broken:
        at = [each.step for each in PROMISES].index(broken.step)
        return [
            *(Step(each, "kept") for each in PROMISES[:at]),
            Step(PROMISES[at], "broken", str(broken)),
            *(Step(each, "not tested") for each in PROMISES[at + 1 :]),
        ]
    return [Step(each, "kept") for each in PROMISES]


def _require_kept(image: str, folder: Path, within_s: float) -> None:
    """Raise Broken for the first promise that the image breaks."""
    _, missing = image_contract.kind_of(image, COMPOSE)
    if missing:
        raise Broken("image", missing)
    run_id = f"peer-check/{secrets.token_hex(8)}"
    lab = labs.make(COMPOSE, topology.build(run_id, HOSTS, HOSTS), records=folder, runs=folder)
    try:
        lab.up()
        checked = CheckedImage(image, lab, HOSTS[0], folder)
        seen = checked.wait_for_cnc(within_s)
        checked.watch_heartbeat(seen)
        if seen.client_liveness_ns != CLIENT_LIVENESS_S * NS_PER_S:
            found_s = seen.client_liveness_ns / NS_PER_S
            raise Broken("environment", f"a client liveness timeout of {found_s:g} s in cnc.dat")
        checked.stop()
        CheckedImage(image, lab, HOSTS[1], folder, image_contract.UNKNOWN_VERSION).refuse(within_s)
    finally:
        lab.down()


class CheckedImage:
    """A container of the image on a host, and the program that watches its cnc.dat."""

    def __init__(
        self, image: str, lab: Lab, host: str, folder: Path, version: str = image_contract.VERSION
    ) -> None:
        assert isinstance(lab, ContainerLab)
        directory = f"{lab.shared_memory(host)}/aeron"
        python = lab.python(host)
        env = {
            **peers.image_variables(directory),
            **image_contract.variables(SCENARIO, version),
            CLIENT_LIVENESS: f"{CLIENT_LIVENESS_S}s",
        }
        log, watch_log = folder / f"{host}-driver.log", folder / f"{host}-watch.log"
        argv = [python, "-m", "windtunnel.harness.capture.cnc_watch", "--aeron-dir", directory]
        watcher = lab.spawn(host, argv, log=watch_log)
        self._watch = WatchedProcess(watcher.name, watcher, "sampler", watch_log)
        request = image_contract.driver_request(image, env, log, LOG_BYTES_MAX)
        self._driver: LabApplication = lab.start_application(f"{host}/driver", request)

    def wait_for_cnc(self, within_s: float) -> CncSight:
        """Wait until the driver has a cnc.dat with a heartbeat. Raises Broken if it has none."""
        late_s = time.monotonic() + within_s
        seen = CncSight("the lab has not looked for cnc.dat")
        while time.monotonic() < late_s:
            seen = self._newest(seen)
            self._require_alive()
            if not seen.problem and (minor := seen.version >> 8) < CNC_MINOR_MIN:
                raise Broken("cnc", f"a cnc.dat of version 0.{minor}")
            if not seen.problem and seen.heartbeat_ms != 0:
                return seen
            time.sleep(POLL_S)
        problem = seen.problem or "cnc.dat has no heartbeat"
        raise Broken("cnc", f"{problem}, after {within_s:g} s{self._log_text()}")

    def watch_heartbeat(self, seen: CncSight) -> None:
        """Wait until the heartbeat has advanced. Raises Broken if it does not."""
        first_ms, late_s = seen.heartbeat_ms, time.monotonic() + HEARTBEAT_WITHIN_S
        while seen.heartbeat_ms <= first_ms:
            self._require_alive()
            if time.monotonic() > late_s:
                text = f"none since {first_ms} ms, after {HEARTBEAT_WITHIN_S:g} s"
                raise Broken("heartbeat", seen.problem or f"{text}{self._log_text()}")
            time.sleep(POLL_S)
            seen = self._newest(seen)
        ahead_s = seen.heartbeat_ms / MS_PER_S - time.time()
        if abs(ahead_s) > HEARTBEAT_WITHIN_S:
            raise Broken("heartbeat", f"{seen.heartbeat_ms} ms, which is {ahead_s:+.0f} s from now")

    def stop(self) -> None:
        """Ask the driver to end. Raises Broken if it does not, or not in order."""
        self._driver.terminate()
        code = self._driver.wait(STOP_WITHIN_S)
        if code is None:
            self._driver.kill()
            raise Broken("stop", f"it still ran {STOP_WITHIN_S:g} s after SIGTERM")
        if code not in ORDERLY_EXIT_CODES:
            raise Broken("stop", self._end_text(code))

    def refuse(self, within_s: float) -> None:
        """Wait until the image has refused to start a driver. Raises Broken if it does not."""
        code = self._driver.wait(within_s)
        if code is None:
            self._driver.kill()
            raise Broken("not-supported", f"it still ran after {within_s:g} s")
        if code != UNSUPPORTED_EXIT_CODE or self._driver.problem()[0]:
            raise Broken("not-supported", self._end_text(code))

    def _require_alive(self) -> None:
        code = self._driver.poll()
        # The engine may take long to end what has a problem.
        if code is not None or self._driver.problem()[0]:
            raise Broken("start", self._end_text(code or 0))

    def _end_text(self, code: int) -> str:
        problem, text = self._driver.problem()
        if problem:
            return text
        how = f"signal {-code} ended it" if code < 0 else f"it ended with exit code {code}"
        return f"{how}{self._log_text()}"

    def _log_text(self) -> str:
        lines = self._driver.tail(LOG_LINES)
        return f"; the last lines of its log: {lines}" if lines else "; its log is empty"

    def _newest(self, seen: CncSight) -> CncSight:
        """Return the newest state of cnc.dat, which is `seen` if it has not changed."""
        for line in self._watch.new_lines():
            with suppress(ValueError, TypeError):
                seen = CncSight(**json.loads(line))
        return seen


def document_of(image: str, steps: list[Step]) -> Mapping[str, Any]:
    """Return the outcome of all steps as a JSON document."""
    return {
        "schema": "windtunnel-peer-check/1",
        "image": image,
        "kept": all(each.outcome == "kept" for each in steps),
        "steps": [
            {
                **{field.name: getattr(each.promise, field.name) for field in fields(Promise)},
                "outcome": each.outcome,
                "found": each.found,
            }
            for each in steps
        ],
    }
