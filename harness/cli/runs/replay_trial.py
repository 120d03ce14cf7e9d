"""Replaying what `windtunnel swarm --keep` left: the seed makes the trial again, bit for bit.

A trial has no scenario: its seed chooses streams, configuration and faults, and its traffic and its
audit live in the simulator. So it is made again whole, and compared by the digest of everything
that happened in it.
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
"""Those of `windtunnel swarm` that change a trial beside its seed."""


def replay_trial(
    folder: "RunDir", manifest: "Manifest", is_changed: bool, out: Path, as_json: bool
) -> int:
    """Make a trial again and compare. Returns its exit code, or HARNESS where it differs."""
    from windtunnel.harness.artifact.regular_file import real_path
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.artifact.run.simulation import Simulation
    from windtunnel.harness.orchestrate.swarm import run_swarm

    if is_changed:
        text = "a trial of the swarm is its seed's, on virtual time: it has no other peer or place"
        raise Failure(f"{folder.path}: {text}", exit_code.USAGE)
    first = Simulation.read(folder.simulation)
    if first is None:
        text = f"{folder.simulation}: this file is missing, so there is nothing to compare with"
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
        what = "left nothing" if second is None else f"has events {second.digest}"
        text = f"seed {manifest.seed} {what}, the trial that is replayed has {first.digest}"
        raise Failure(f"{text}: another version of driver or simulator made it", exit_code.HARNESS)
    if not as_json:
        click.echo(f"replay: the same {second.datagrams if second else 0} datagrams, bit for bit")
    shutil.rmtree(again.path, ignore_errors=True)
    return code


def _options(folder: "RunDir", command: list[str]) -> list[str]:
    """What of a trial's command changes it, beside the seed; Failure if a value cannot be."""
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
