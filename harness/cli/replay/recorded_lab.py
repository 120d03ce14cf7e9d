"""Replay of a run that a program controlled, such as a test with a lab, or `windtunnel lab`.

    lab-requests.json + the user's programs --> a lab with the same hosts, links and drivers, which
                                                gets the same requests at the same times

The run folder records when a link changes, and when a program is started, paused or stopped. The
commands of the programs must come from the user, since a run folder is untrusted.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.harness.cli import exit_code
from windtunnel.harness.cli.failure import Failure
from windtunnel.harness.cli.render.table import echo, printable
from windtunnel.harness.cli.render.verdict_text import run_line

if TYPE_CHECKING:
    from windtunnel.harness.artifact.run_dir import RunDir
    from windtunnel.harness.orchestrate.live.lab_record import LabRecord, RecordedRequest
    from windtunnel.harness.orchestrate.live.live_suite import LabEnd

OPTION = "--program"
FIDELITIES = ("netns", "compose")


def replay_lab(
    folder: "RunDir",
    programs: Mapping[str, str],
    drivers: tuple[str | None, str | None],
    fidelity: str | None,
    out: Path,
    arguments: Sequence[str],
    as_json: bool,
) -> int:
    """Repeat a run that a program controlled, and return the exit code.

    `programs` are the commands of its programs, and `drivers` those of the first host and of all
    others, or None for the recorded ones. Raises Failure if the run cannot be repeated.
    """
    from windtunnel.harness.orchestrate.fidelity import NETNS
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.live.live_suite import run_lab
    from windtunnel.harness.orchestrate.live.recorded_requests import RecordedRequests

    record = read_record(folder)
    options = {**record.options.model_dump(), "driver": drivers_of(folder, record, drivers)}
    options["fidelity"] = fidelity or record.options.fidelity
    if options["fidelity"] not in FIDELITIES:
        text = f"expected {' or '.join(FIDELITIES)}: programs need real time"
        raise Failure(f"--fidelity: {text}", exit_code.USAGE)
    requests = with_programs(folder, record, programs)
    if options["fidelity"] == NETNS:
        privileges.acquire()
    argv = ["windtunnel", "replay", str(folder.path), *arguments]
    argv += [word for each in programs.items() for word in (OPTION, "=".join(each))]
    options |= {"out": str(out.resolve()), "folder": str(Path.cwd()), "argv": argv}
    again = RecordedRequests(requests, record.ended_ns, lambda text: click.echo(text, err=True))
    end = run_lab(again, options)
    report = _report(end)
    if as_json:
        same, count = again.counts
        facts: dict[str, object] = {"whole": same == count, "requests": count, "repeated": same}
        facts |= {"outcome": end.outcome, "reason": end.reason, "run_dir": str(end.run_dir)}
        click.echo(json.dumps({"kind": "replay", **facts, "report": report}))
    else:
        name = printable(record.options.name)
        click.echo(run_line(end.outcome, name, end.seed, end.reason, None))
        echo(f"run folder: {end.run_dir}")
        if report is not None:
            echo(f"report: {report}")
        echo(f"replay: {again.text}")
    return _code_of(end)


def _report(end: "LabEnd") -> str | None:
    from windtunnel.harness.cli.runs.run_output import write_report

    report = write_report(end.suite_dir)
    return None if report is None else str(report)


def _code_of(end: "LabEnd") -> int:
    from windtunnel.harness.verdict.core.outcome import Outcome
    from windtunnel.harness.verdict.core.outcome import exit_code as code_of

    is_known = end.outcome in Outcome.__members__
    return code_of(Outcome[end.outcome]) if is_known else exit_code.HARNESS


def read_record(folder: "RunDir") -> "LabRecord":
    """Return what the program requested. Raises Failure if that is not known."""
    from windtunnel.harness.orchestrate.live.lab_record import RECORDED_MAX, LabRecord

    record = LabRecord.read(folder.lab_requests)
    if record is None:
        text = f"{folder.lab_requests}: file not found: what the program requested is not known: "
        text += f"run the program again: {folder.repro.name} has its command line"
        raise Failure(text, exit_code.INCONCLUSIVE)
    if record.left_out:
        text = f"{folder.path}: the program requested more than {RECORDED_MAX} changes"
        raise Failure(f"{text}, and the others are not known", exit_code.INCONCLUSIVE)
    return record


def drivers_of(
    folder: "RunDir", record: "LabRecord", chosen: tuple[str | None, str | None]
) -> dict[str, str]:
    """Return the driver of each host: the given one for the first host and for all others, or that
    of the run. Raises Failure for a program that the run folder names.
    """
    from windtunnel.harness.orchestrate.subjects.peers import ALIASES, BUILT_IN_NAMES

    found = {}
    for index, host in enumerate(record.options.hosts):
        option = chosen[min(index, 1)]
        name = option or record.options.driver.get(host, "ours")
        if option is None and name not in BUILT_IN_NAMES and name not in ALIASES:
            side = "publisher" if index == 0 else "subscriber"
            text = f"the driver of host {host} is {name!r}, and programs named by a run folder are "
            text += f"not started: if you trust it, add --{side} {shlex.quote(name)}"
            raise Failure(f"{folder.lab_requests}: {text}", exit_code.USAGE)
        found[host] = name
    return found


def with_programs(
    folder: "RunDir", record: "LabRecord", programs: Mapping[str, str]
) -> "list[RecordedRequest]":
    """Return the requests, with the user's commands in place of the recorded ones. Raises Failure
    unless there is a command for each program.
    """
    started = {each.application: each for each in record.requests if each.application}
    unknown = [name for name in programs if name not in started]
    if unknown:
        known = ", ".join(map(printable, started)) or "none"
        text = f"{OPTION}: the run had no program {unknown[0]!r}: its programs are {known}"
        raise Failure(text, exit_code.USAGE)
    images = [name for name, each in started.items() if each.request.get("image")]
    if images:
        text = f"{folder.path}: program {images[0]} was an image of its own, and a replay starts "
        raise Failure(f"{text}commands only: run the program again", exit_code.USAGE)
    missing = [each for name, each in started.items() if name not in programs]
    if missing:
        hints = " ".join(f"{OPTION} {shlex.quote(shown_program(each))}" for each in missing)
        text = f"{folder.path}: the run had programs, and those named by a run folder are not "
        text += "started: read what it names, and if you trust it, add"
        raise Failure(f"{text} {hints}", exit_code.USAGE)
    search = {"PATH": os.environ["PATH"]} if "PATH" in os.environ else {}
    own = {"env": {}, "folder": str(Path.cwd()), "variables": search}
    found = []
    for each in record.requests:
        if each.application:
            command = words_of(each.application, programs[each.application])
            changed: dict[str, Any] = {**each.request, **own, "command": command}
            found.append(each.model_copy(update={"request": changed}))
        elif each.do != "start":
            found.append(each)
        # Else it was refused before anything was started.
    return found


def shown_program(request: "RecordedRequest") -> str:
    """Return the command of a program as an argument of `--program`. Its variables are set by the
    program `env`.
    """
    command, env = request.request.get("command"), request.request.get("env")
    words = [str(each) for each in command] if isinstance(command, list) else []
    set_ = [f"{name}={value}" for name, value in env.items()] if isinstance(env, dict) else []
    return f"{request.application}={shlex.join(['env', *set_, *words] if set_ else words)}"


def words_of(name: str, command: str) -> list[str]:
    """Return the words of a command. Raises Failure if its quotes are not closed."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Failure(f"{OPTION} {name}: {error}", exit_code.USAGE) from error
    if not words:
        raise Failure(f"{OPTION} {name}: expected a command", exit_code.USAGE)
    return words
