"""The first documents of a run: its manifest and its case, with the payload and command line."""

from __future__ import annotations

import shlex
import shutil

from windtunnel.harness.artifact.run.manifest import Manifest, SubjectFacts
from windtunnel.harness.orchestrate import facts
from windtunnel.harness.orchestrate.fidelity import NETNS, SIM
from windtunnel.harness.orchestrate.lab import Lab
from windtunnel.harness.orchestrate.labs.namespaces import environment
from windtunnel.harness.orchestrate.run.run_spec import RunSpec
from windtunnel.harness.orchestrate.subjects.subject import JUDGED_SETTINGS
from windtunnel.harness.scenario.resolved.case import Case, Payload
from windtunnel.harness.scenario.resolved.resolution import resolve


def new_manifest(spec: RunSpec) -> Manifest:
    """Return the manifest of a run that has not started."""
    return Manifest(
        run_id=spec.run_id,
        scenario=spec.scenario.name,
        seed=spec.seed,
        fidelity=spec.fidelity,
        command=list(spec.command),
        subjects={host: _subject_facts(spec, host) for host in spec.scenario.network.hosts},
        versions=facts.versions(),
        host_facts=facts.host_facts(),
        sabotage=spec.sabotage,
        mutant=spec.tested.mutant,
        receive=dict(spec.receive),
        replays="" if spec.replayed is None else spec.replayed.run_id,
    )


def _subject_facts(spec: RunSpec, host: str) -> SubjectFacts:
    tested = spec.subject(host)
    settings = _settings(spec, host)
    return SubjectFacts(spec.side(host), tested.name, settings=settings, kind=tested.kind)


def _settings(spec: RunSpec, host: str) -> dict[str, str]:
    """Return the settings of a host's driver that affect what the judge accepts."""
    inherited = environment() if spec.fidelity in (NETNS, SIM) else {}
    variables = {**inherited, **spec.subject(host).environment}
    return {name: variables[name] for name in JUDGED_SETTINGS if name in variables}


def resolved_case(spec: RunSpec, lab: Lab) -> Case:
    """Write the command line and the payload of a run, and return its case, which is not written
    yet.
    """
    folder = spec.folder
    folder.repro.write_text(shlex.join(spec.command) + "\n")
    folder.payload.unlink(missing_ok=True)
    try:
        folder.payload.hardlink_to(spec.payload.path)
    except OSError:
        shutil.copyfile(spec.payload.path, folder.payload)
    payload = Payload(
        path=lab.path(folder.payload), sha256=spec.payload.sha256, length_bytes=spec.payload.length
    )
    case = resolve(
        spec.scenario,
        seed=spec.seed,
        fidelity=spec.fidelity,
        addresses={host: lab.address(host) for host in spec.scenario.network.hosts},
        payload=payload,
    )
    if spec.replayed is not None:
        shutil.copyfile(spec.replayed.decisions, folder.replayed)
        case = case.model_copy(update={"replays": spec.replayed.run_id})
    return case
