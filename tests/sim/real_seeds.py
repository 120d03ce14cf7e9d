"""Runs a case with real drivers several times in one process, and prints the digests.

    python -m tests.sim.real_seeds CASE FOLDER SEED=HOST[,HOST] ...

The hosts of a run have the real driver. Each line has the run, its exit code, its digest, and
whether each subscriber got what was sent.
"""

import sys
from pathlib import Path

from tests.sim.simulated import payload_in
from windtunnel.harness.artifact.run.simulation import Simulation
from windtunnel.harness.artifact.run_dir import RunDir
from windtunnel.harness.scenario.loader import load_scenario
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.resolved.resolution import resolve
from windtunnel.harness.simulator.service import make_run

ADDRESSES = {"a": "10.64.0.3", "b": "10.64.0.19"}


def deliveries_are_whole(case: Case, folder: RunDir) -> bool:
    """Return whether each subscriber received the bytes of the payload file."""
    payload = Path(case.payload.path).read_bytes()
    return all(
        folder.host(host).subscriber(each.id).messages.read_bytes()
        == (payload * (each.total_bytes // len(payload) + 1))[: each.total_bytes]
        for each in case.traffic
        for host in each.subscribers
    )


def main(scenario: str, out: str, *runs: str) -> None:
    for run in runs:
        seed, _, real = run.partition("=")
        folder = RunDir(Path(out) / run)
        folder.make()
        case = resolve(
            load_scenario(Path(scenario)),
            seed=int(seed),
            fidelity="sim",
            addresses=ADDRESSES,
            payload=payload_in(folder),
        )
        case.write(folder.case)
        code = make_run(folder.case, folder, Path(out) / "memory", "", real.split(","))
        found = Simulation.read(folder.simulation)
        digest = found.digest if found is not None else ""
        print(run, code, digest, deliveries_are_whole(case, folder), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
