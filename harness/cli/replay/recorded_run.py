"""Validates the folder of a run that is to be repeated: its files, and the programs they name."""

import shlex
from typing import TYPE_CHECKING

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.artifact.run_dir import RunDir

FIDELITIES = ("netns", "compose", "sim")


def is_live(folder: "RunDir") -> bool:
    """Return whether a program controlled a run. Raises DocumentError for a damaged case."""
    from windtunnel.harness.artifact.documents import read_document

    return (read_document(folder.case) or {}).get("live") is True


def read_manifest(folder: "RunDir") -> "Manifest":
    """Read and validate a run folder's manifest. Raises Failure if it is missing or invalid."""
    from windtunnel.harness.artifact.run.manifest import Manifest
    from windtunnel.harness.scenario.schema.model import SEED_MAX

    if not folder.path.is_dir():
        raise Failure(f"{folder.path}: no such folder", exit_code.INCONCLUSIVE)
    manifest = Manifest.read(folder.manifest)
    if manifest is None:
        text = f"{folder.path}: not a run folder: it has no {folder.manifest.name}"
        raise Failure(text, exit_code.INCONCLUSIVE)
    for name, value, is_valid, expected in (
        ("fidelity", manifest.fidelity, manifest.fidelity in FIDELITIES, " or ".join(FIDELITIES)),
        ("seed", manifest.seed, 0 <= manifest.seed <= SEED_MAX, f"0 to {SEED_MAX}"),
    ):
        if not is_valid:
            text = f"{folder.manifest}: {name}: expected {expected}, found {value!r}"
            raise Failure(text, exit_code.INCONCLUSIVE)
    return manifest


def peers_of(
    folder: "RunDir", manifest: "Manifest", publisher: str | None, subscriber: str | None
) -> tuple[str, str]:
    """Return the names of the peers (drivers) to start: the given names or, by default, the
    original run's.

    Raises Failure if the original run used a peer that is not built in, because a path in a run
    folder is untrusted.
    """
    from windtunnel.harness.orchestrate.subjects.peers import ALIASES, BUILT_IN_NAMES

    recorded = {each.side: each.peer for each in manifest.subjects.values()}
    found = []
    for side, option in (("publisher", publisher), ("subscriber", subscriber)):
        name = option or recorded.get(side, "ours")
        if option is None and name not in BUILT_IN_NAMES and name not in ALIASES:
            text = f"the {side} is {name!r}, and programs named by a run folder are not started"
            hint = f"if you trust it, add --{side} {shlex.quote(name)}"
            raise Failure(f"{folder.manifest}: {text}: {hint}", exit_code.USAGE)
        found.append(name)
    return found[0], found[1]


def require_known_defects(folder: "RunDir", sabotage: str, mutant: str) -> None:
    """Raise Failure if the run folder names an unknown defect for `--sabotage` or `--mutant`. An
    empty name means that the option was not used.
    """
    from windtunnel.harness.exam import mutant_set
    from windtunnel.harness.exam.mutant import MutantError
    from windtunnel.harness.orchestrate.subjects.subject import SABOTAGES

    try:
        if sabotage and sabotage not in SABOTAGES:
            text = f"sabotage: expected one of {', '.join(SABOTAGES)}, found {sabotage!r}"
            raise Failure(f"{folder.manifest}: {text}", exit_code.INCONCLUSIVE)
        if mutant:
            mutant_set.of_name(mutant).chosen(mutant)
    except MutantError as error:
        raise Failure(f"{folder.manifest}: mutant: {error}", exit_code.INCONCLUSIVE) from error


def require_replayable(folder: "RunDir") -> None:
    """Raise Failure unless the run folder has all files that a replay needs, and they do not
    contradict each other.
    """
    from windtunnel.harness.artifact.middlebox.decision import DecisionLogError, read_replayable
    from windtunnel.harness.artifact.middlebox.ledger import Ledger
    from windtunnel.harness.artifact.regular_file import size_of
    from windtunnel.harness.middlebox.engine.replayed_decisions import (
        ReplayError,
        compile_decisions,
    )
    from windtunnel.harness.scenario.resolved.case import Case

    for path in (folder.scenario, folder.case, folder.payload):
        try:
            size_of(path)
        except FileNotFoundError as error:
            text = f"{path}: file not found: the run cannot be repeated without it"
            raise Failure(text, exit_code.INCONCLUSIVE) from error
    try:
        case = Case.read(folder.case)
    except ValueError as error:
        text = f"{folder.case}: cannot be parsed: {str(error).splitlines()[0]}"
        raise Failure(text, exit_code.INCONCLUSIVE) from error
    if case.applications:
        text = (
            f"{folder.path}: the run had applications, and programs named by a run folder are not "
        )
        text += "started: run the original scenario with `windtunnel run FILE --allow-commands`"
        if case.live:
            text = (
                f"{folder.path}: a program controlled this run, so it is repeated by running the "
            )
            text += f"program again: {folder.repro.name} has its command line"
        raise Failure(text, exit_code.USAGE)
    try:
        decisions = read_replayable(folder.decisions)
        compile_decisions(case, decisions)
    except DecisionLogError as error:
        raise Failure(str(error), exit_code.INCONCLUSIVE) from error
    except ReplayError as error:
        raise Failure(f"{folder.decisions}: {error}", exit_code.INCONCLUSIVE) from error
    ledger = Ledger.read(folder.ledger)
    selected = None if ledger is None else sum(each.selected for each in ledger.rules.values())
    if selected is not None and selected != len(decisions):
        text = f"{folder.decisions}: expected {selected} decisions (as in ledger.json)"
        raise Failure(f"{text}, found {len(decisions)}", exit_code.INCONCLUSIVE)
