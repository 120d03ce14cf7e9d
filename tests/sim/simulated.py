"""Runs of scenario files on virtual time, shortened for tests."""

import atexit
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.orchestrate.fidelity import Fidelity
from windtunnel.harness.orchestrate.precompile import precompile
from windtunnel.harness.orchestrate.processes import fork_server_client
from windtunnel.harness.orchestrate.run import payload
from windtunnel.harness.orchestrate.suite import runner
from windtunnel.harness.orchestrate.suite.runner import PAYLOAD_STORE, RunSummary
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import Payload
from windtunnel.harness.scenario.resolved.resolution import resolve

REPOSITORY = Path(__file__).parents[2]
SCENARIOS = REPOSITORY / "scenarios"
FULL_LENGTH = "64MiB"
ADDRESSES = {
    name: f"10.64.0.{3 + 16 * index}"
    for index, name in enumerate(("a", "b", "pub", "sub1", "sub2", "sub3"))
}


def shortened(name: str, folder: Path, length: str) -> Path:
    """Write a copy of a scenario file with less traffic, and return its path."""
    text = (SCENARIOS / f"{name}.yaml").read_text()
    assert FULL_LENGTH in text
    path = folder / "scenarios" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(FULL_LENGTH, length))
    return path


@cache
def _payload() -> payload.Payload:
    """Return the default payload. Each folder of runs would otherwise have its own archive,
    and writing it takes as long as a short run.
    """
    store = tempfile.TemporaryDirectory(prefix="windtunnel-payload-")
    atexit.register(store.cleanup)
    return payload.default_payload(Path(store.name))


def with_payload(runs: Path) -> Path:
    """Store the default payload below a folder of runs. Returns the folder."""
    stored = runs / PAYLOAD_STORE / _payload().path.name
    if not stored.exists():
        stored.parent.mkdir(parents=True, exist_ok=True)
        os.link(_payload().path, stored)
    return runs


def _payload_of(store: Path, file: Path | None) -> payload.Payload:
    if file is not None:
        return payload.file_payload(store, file)
    return replace(_payload(), path=store / _payload().path.name)


_mark_name = cache(precompile.mark_name)


@contextmanager
def _read_once() -> Iterator[None]:
    """Let suites know the digests of the default payload and of the sources from the first suite.

    Each suite reads both from beginning to end, which takes a good part of a short run's time.
    """
    with (
        patch.object(runner, "payload_of", _payload_of),
        patch.object(precompile, "mark_name", _mark_name),
    ):
        yield


def run(scenario: Path, folder: Path, fidelity: Fidelity = "sim", **options: Any) -> RunSummary:
    """Run and judge a scenario as the command does. Returns its result."""
    out = with_payload(folder / "runs")
    with _read_once():
        (result,) = runner.run_suite([scenario], fidelity=fidelity, out=out, **options).runs
    # The simulators of later runs inherit the kernels from the fork server.
    fork_server_client.load_kernels()
    return result


def run_all(names: Sequence[str], folder: Path) -> dict[str, RunSummary]:
    """Run and judge each of these scenarios, two at a time. Returns results by name."""
    files = [SCENARIOS / f"{name}.yaml" for name in names]
    with _read_once():
        made = runner.run_suite(files, fidelity="sim", out=with_payload(folder), seeds=1, jobs=2)
    return {each.scenario: each for each in made.runs}


def run_twice(scenario: Path, folder: Path, seeds: tuple[int, int]) -> tuple[Simulation, ...]:
    """Run a scenario twice at the same time, in the folders `first` and `second`."""
    with ThreadPoolExecutor(2) as pool:
        running = [
            pool.submit(run_alone, scenario, folder / name, seed=seed, hash_seed=hash_seed)
            for name, seed, hash_seed in zip(("first", "second"), seeds, "12", strict=True)
        ]
        return tuple(each.result() for each in running)


def payload_in(run_dir: RunDir) -> Payload:
    """Write the payload of a run into its folder."""
    run_dir.payload.write_bytes(np.arange(1 << 20, dtype=np.uint32).tobytes())
    digest = hashlib.sha256(run_dir.payload.read_bytes()).hexdigest()
    return Payload(path=str(run_dir.payload), sha256=digest, length_bytes=4 << 20)


def run_alone(scenario: Path, folder: Path, seed: int, hash_seed: str) -> Simulation:
    """Run a scenario in a separate process, without a judge. Returns its simulation document."""
    run_dir = RunDir(folder)
    run_dir.make()
    sent = payload_in(run_dir)
    loaded = load_scenario(scenario)
    resolve(loaded, seed=seed, fidelity="sim", addresses=ADDRESSES, payload=sent).write(
        run_dir.case
    )
    subprocess.run(
        [
            *(sys.executable, "-m", "windtunnel.harness.simulator", "run"),
            *("--case", str(run_dir.case)),
            *("--out", str(folder)),
            *("--memory", str(folder / "memory")),
        ],
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.DEVNULL,
    )
    found = Simulation.read(run_dir.simulation)
    assert found is not None
    return found
