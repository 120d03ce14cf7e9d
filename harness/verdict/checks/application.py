"""Check that a scenario's applications ran and ended as expected. It is part of every verdict."""

import os
import signal
from collections.abc import Callable, Iterator

from windtunnel.harness.artifact.regular_file import open_regular
from windtunnel.harness.artifact.run.manifest import (
    CANNOT_START,
    LOG_LOST,
    LOG_TOO_LONG,
    NOT_READY,
    Manifest,
    ProcessExit,
)
from windtunnel.harness.scenario.applications.application_case import ApplicationCase
from windtunnel.harness.scenario.schema.units import format_duration
from windtunnel.harness.verdict.core.completeness import ROLE, application_exits, application_name
from windtunnel.harness.verdict.core.evidence import Evidence
from windtunnel.harness.verdict.core.finding import (
    AtFault,
    Finding,
    Missing,
    failed,
    inconclusive,
    passed,
    present,
)
from windtunnel.harness.verdict.core.kind import Kind
from windtunnel.harness.verdict.core.outcome import Outcome
from windtunnel.harness.verdict.core.process_error import unread

NAME = "applications_ran"
LOG_BYTES_MAX = 256 << 20
"""Maximum number of bytes of a log that are searched. The harness keeps fewer."""


def applications_ran(evidence: Evidence) -> list[Finding]:
    """Each application was ready in time, ended as the scenario expects, and logged no forbidden
    text.
    """
    manifest, case = present(evidence.manifest, evidence.case)
    findings = []
    for application in case.applications:
        found = list(_findings(evidence, manifest, application))
        text = "ran, and ended as expected"
        findings += found or [passed(NAME, f"{application.id} {text}", application.id)]
    # The process that ended first stopped the run; others may have failed because of it.
    first = manifest.stopped.partition(" ")[0]
    return sorted(findings, key=lambda each: not first.endswith(f"/{ROLE}-{each.about}"))


def _findings(
    evidence: Evidence, manifest: Manifest, application: ApplicationCase
) -> Iterator[Finding]:
    name, exits = application_name(application), application_exits(manifest, application)
    if not exits:
        where = evidence.name_of(evidence.folder.manifest)
        yield inconclusive(NAME, Missing(where, f"lists no {name}"), application.id)
        return
    for each in exits:
        if each.problem == LOG_LOST or not _was_killed_by_event(evidence, application, each):
            yield from _end(manifest, application, each)
    yield from _log(evidence, application)


def _was_killed_by_event(
    evidence: Evidence, application: ApplicationCase, each: ProcessExit
) -> bool:
    happened = evidence.host_events
    if not each.asked or each.exit_code != -signal.SIGKILL or each.late_s:
        return False
    if isinstance(happened, Missing):
        return True
    return any(
        event.action == "kill" and event.host == application.host and ROLE in event.processes
        for event in happened
    )


def _end(manifest: Manifest, application: ApplicationCase, each: ProcessExit) -> Iterator[Finding]:
    """Yield a finding if an application was not ready, or did not end as expected."""
    about, log = application.id, f"; its log {each.log} ends with: {each.last_log_line}"
    log = log if each.last_log_line else ""
    where = (each.log,) if each.log else ()

    def failure(text: str, kind: Kind, *, conclusive: bool = True) -> Finding:
        return failed(NAME, f"{each.name} {text}{log}", about, evidence=where, kind=kind,
                      conclusive=conclusive, at_fault=AtFault.APPLICATION)  # fmt: skip

    if each.problem == CANNOT_START:
        text = f"{each.name} cannot be started: {each.last_log_line}"
        yield Finding(NAME, Outcome.INCONCLUSIVE, text, about, where, at_fault=AtFault.SCENARIO)
    elif each.problem == LOG_LOST:
        text = f"{each.name} was ended, because its log {each.log} is incomplete: it could not be "
        text += "written, for example because the disk was full, or the container engine did not "
        text += "deliver it"
        yield Finding(NAME, Outcome.INCONCLUSIVE, text, about, where, at_fault=AtFault.MACHINE)
    elif each.problem == LOG_TOO_LONG:
        yield failure("was killed, because its log became too long", Kind.SAFETY)
    elif each.problem == NOT_READY:
        within = format_duration(application.ready_within_ns)
        text = f"was not ready within {within}: no line of its log contains "
        # This ends the run, so the end of the run is no excuse.
        yield failure(f"{text}{application.ready_log!r}", Kind.TIMEOUT, conclusive=False)
    elif each.late_s:
        text = f"did not end within {each.late_s:g} s of SIG{application.stop_signal}"
        yield failure(f"{text}, and was killed", Kind.LIVENESS, conclusive=False)
    elif each.exit_code is None:
        yield Finding(NAME, Outcome.INCONCLUSIVE, f"{each.name} has no exit code", about, where)
    elif application.ends_at_any_time:
        yield from _exit_code(application, each, failure)
    elif application.ends_by_itself and each.asked:
        if manifest.overran:
            yield failure("did not end by itself", Kind.LIVENESS, conclusive=False)
        else:
            text = f"{each.name} did not end by itself, because the run ended early"
            yield Finding(NAME, Outcome.INCONCLUSIVE, text, about, where)
    elif not application.ends_by_itself and not each.asked:
        yield failure(f"{_how(each.exit_code)} before it was asked to end", Kind.SAFETY)
    else:
        yield from _exit_code(application, each, failure)


def _exit_code(
    application: ApplicationCase, each: ProcessExit, failure: Callable[[str, Kind], Finding]
) -> Iterator[Finding]:
    """Yield a finding if an application ended with an exit code that is not expected of it."""
    code = each.exit_code or 0
    if not application.may_end_with(code, asked=each.asked):
        codes = application.expected_exit_codes(asked=each.asked)
        expected = " or ".join(map(str, codes))
        yield failure(f"{_how(code)}, expected exit code {expected}", Kind.SAFETY)


def _how(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _log(evidence: Evidence, application: ApplicationCase) -> Iterator[Finding]:
    """Yield a finding for each text that the log must not contain, with its first line."""
    if not application.log_never:
        return
    path = evidence.folder.host(application.host).application(application.id).log
    where = evidence.name_of(path)
    missing = {text: text.encode() for text in application.log_never}
    try:
        with open_regular(path) as file:
            number = 0
            while file.tell() < LOG_BYTES_MAX and (line := file.readline(LOG_BYTES_MAX)):
                number += 1
                for text in [each for each, sought in missing.items() if sought in line]:
                    del missing[text]
                    shown = line[:200].decode(errors="replace").strip()
                    found = f"{application.id} logged {text!r}, which it must not"
                    yield failed(
                        NAME,
                        f"{found}, first in line {number} of {where}: {shown}",
                        application.id,
                        evidence=(where,),
                        kind=Kind.SAFETY,
                        conclusive=True,
                        at_fault=AtFault.APPLICATION,
                    )
            is_cut = os.fstat(file.fileno()).st_size > LOG_BYTES_MAX
    except OSError as error:
        yield inconclusive(NAME, unread(where, error), application.id)
        return
    if is_cut:
        text = f"{where} has more than {LOG_BYTES_MAX >> 20} MiB, of which the rest was not read"
        yield Finding(NAME, Outcome.INCONCLUSIVE, text, application.id, (where,))
