"""Replay of a simulated trial stored by `windtunnel swarm --keep`. The seed reproduces the trial
bit for bit.

A trial has no scenario file: its seed determines streams, configuration and faults, and the
simulator generates and checks its traffic. The whole trial is simulated again, and the digests of
all events are compared.
"""

import json
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.runs.swarm import swarm

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.artifact.run_dir import RunDir

OPTIONS = ("--frames", "--sabotage")
"""Options of `windtunnel swarm`, other than --seed, that affect a trial's course."""


def replay_trial(
    folder: "RunDir", manifest: "Manifest", is_changed: bool, out: Path, as_json: bool
) -> int:
    """Simulate a stored trial again and return its exit code. Raises Failure if the digest of the
    new simulation differs from the stored digest.
    """
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.harness.artifact.run.simulation import Simulation
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.swarm import run_swarm

    if is_changed:
        text = "a swarm trial can only be replayed with its original drivers and fidelity"
        raise Failure(f"{folder.path}: {text}", exit_code.USAGE)
    first = Simulation.read(folder.simulation)
    if first is None:
        text = f"{folder.simulation}: file not found: there is no digest to compare with"
        raise Failure(text, exit_code.INCONCLUSIVE)
    options = _options(folder, manifest.command)
    out = real_path(out)
    out.mkdir(parents=True, exist_ok=True)
    again = RunDir(Path(tempfile.mkdtemp(prefix=f"swarm-{manifest.seed}-", dir=out)))
    arguments = ["--seed", str(manifest.seed), "--seeds", "1", *options]
    code = run_swarm([*arguments, "--keep", str(again.path)], out)
    second = Simulation.read(again.simulation)
    is_same = second is not None and second.digest == first.digest
    if as_json:
        facts = {"seed": manifest.seed, "digest": first.digest, "run": str(again.path)}
        click.echo(json.dumps({"kind": "replay", "whole": is_same, **facts}))
    if not is_same:
        text = "the replay wrote no digest" if second is None else f"found digest {second.digest}"
        text = f"seed {manifest.seed}: expected digest {first.digest}, {text}"
        hint = "the trial was created by another version of the driver or simulator"
        raise Failure(f"{text}: {hint}", exit_code.HARNESS)
    if not as_json:
        count = second.datagrams if second else 0
        click.echo(f"replay: all {count} datagrams are identical")
    shutil.rmtree(again.path, ignore_errors=True)
    return code


def _options(folder: "RunDir", command: list[str]) -> list[str]:
    """Return the stored command's options that affect the trial. Raises Failure for an invalid
    value.
    """
    types = {name: each.type for each in swarm.params for name in each.opts}
    found: list[str] = []
    for name, value in pairwise(command):
        if name not in OPTIONS:
            continue
        try:
            found += [name, str(types[name].convert(value, None, None))]
        except click.BadParameter as error:
            text = f"{folder.manifest}: command: {name}: {error.message}"
            raise Failure(text, exit_code.INCONCLUSIVE) from error
    return found
