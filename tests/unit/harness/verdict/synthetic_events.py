"""The synthetic run with an event that paused or killed processes of a host."""

from pathlib import Path

from tests.unit.harness.verdict.synthetic_run import SyntheticRun
from windtunnel.harness.artifact.host.host_event import AppliedEvent, write_applied_events
from windtunnel.harness.scenario.schema.host_event import EventAction, EventCase, Process


def write_with_event(
    run: SyntheticRun,
    action: EventAction,
    host: str,
    process: Process,
    span_ns: tuple[int, int],
) -> Path:
    """Write the folder of a run in which an event paused a host's process, or killed it and
    restarted it.
    """
    path = run.write()
    began_ns, ended_ns = span_ns
    ordered = EventCase(
        id="event",
        host=host,
        process=process,
        trigger="delivered",
        at=1,
        action=action,
        lasts_ns=ended_ns - began_ns,
    )
    run.case.model_copy(update={"events": (ordered,)}).write(run.folder.case)
    applied = AppliedEvent("event", host, action, [process], began_ns, ended_ns)
    write_applied_events(run.folder.host_events, [applied])
    return path
