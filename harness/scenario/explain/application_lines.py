"""Describes the applications of a case."""

import shlex
from collections.abc import Iterator, Sequence

from windtunnel.harness.scenario.applications.application_case import MILLI, ApplicationCase
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration

_DRIVERS = {
    "shared": "uses the driver of its host",
    "embedded": "has a driver of its own",
    "none": "uses no driver",
}


def application_lines(case: Case) -> Iterator[str]:
    """Yield the lines about a case's applications, in the order in which they are started."""
    if not case.applications:
        return
    yield ""
    yield "applications (started in this order, and only with `run --allow-commands`)"
    for each in case.applications:
        text = command_text(each.image, each.command, each.build)
        yield f"  {each.id} on {each.host}: {text}"
        yield from (f"      {line}" for line in _lines(each))


def command_text(image: str | None, command: Sequence[str], build: str | None = None) -> str:
    """Return what an application starts, as text: its command, in its image if it has one."""
    words = shlex.join(command)
    where = f"image built from {build}" if build else f"image {image}" if image else ""
    if not where:
        return words
    return f"{words} ({where})" if words else where


def _limits(application: ApplicationCase) -> Iterator[str]:
    """Yield a text for each limit of an application."""
    if application.memory_bytes:
        yield f"{format_bytes(application.memory_bytes)} of memory"
    if application.milli_cpus:
        yield f"{application.milli_cpus / MILLI:g} processors"
    if application.processes_max:
        yield f"{application.processes_max} processes"


def _lines(application: ApplicationCase) -> Iterator[str]:
    for name, value in application.env.items():
        yield f"{name}={shlex.quote(value)}"
    yield _DRIVERS[application.driver]
    if application.working_dir:
        yield f"starts in {application.working_dir}"
    if application.user:
        yield f"is user {application.user}, also in group 0"
    if limits := ", ".join(_limits(application)):
        yield f"may use {limits}"
    if application.ready_log:
        within = format_duration(application.ready_within_ns)
        yield f"ready when its log contains {application.ready_log!r}, within {within}"
    yield _end_line(application)
    names = ("half", "99 %", "all")
    for name, most_ns in zip(names, application.round_trips_ns, strict=True):
        if most_ns:
            most = format_duration(most_ns)
            yield f"{name} of the round trips that it reports take at most {most}"
    for text in application.log_never:
        yield f"its log must not contain {text!r}"


def _end_line(application: ApplicationCase) -> str:
    code = application.exit_code
    if application.ends_by_itself:
        return f"ends by itself, with exit code {code or 0}"
    within = format_duration(application.stop_within_ns)
    expected = f"exit code {code}" if code is not None else "exit code 0, or by this signal"
    return f"ended with SIG{application.stop_signal}, within {within}: expected {expected}"
