"""The process of a lab: builds it, answers the program that uses it, judges and reports the run.

    python -m windtunnel.harness.lab.server FD FIDELITY

    program                                       this process
      {"open": {hosts, links, observe, ...}}  -->   prepare, lab, drivers
                                              <--   {"progress": "..."} ...
                                              <--   {"ready": {run_dir, addresses, ...}}
      requests                               <-->   answers
      {"do": "close"}                         -->   stop, collect, judge
                                              <--   {"end": {outcome, reason, run_dir, report}}

It is a process of its own because a lab needs privileges, which it acquires by executing itself
again, and signal handlers. If the program ends without closing the lab, so does this process.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from windtunnel.harness.orchestrate.cancel import Cancelled
from windtunnel.harness.orchestrate.fidelity import NETNS
from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import privileges
from windtunnel.harness.orchestrate.live.line_channel import ChannelClosed, LineChannel
from windtunnel.harness.orchestrate.live.live_suite import LabEnd, run_lab

OPEN_TIMEOUT_S = 30.0


def main() -> int:
    """Serve one lab. Returns the exit code."""
    try:
        # Executes this program again in a user namespace, unless it has the privileges. A
        # container engine has its own.
        if sys.argv[2] == NETNS:
            privileges.acquire()
        lacking = ""
    except LabError as error:
        lacking = str(error)
    channel = LineChannel(socket.socket(fileno=int(sys.argv[1])))
    try:
        options = _options(channel)
        if lacking:
            raise LabError(lacking)
        _serve(channel, options)
    except ChannelClosed:
        return 1
    except (LabError, OSError) as error:
        with suppress(ChannelClosed):
            channel.send({"failed": str(error)})
        return 1
    except Cancelled as cancelled:
        return cancelled.exit_code
    return 0


def _options(channel: LineChannel) -> dict[str, Any]:
    """Return the options of the lab, which the program sends first."""
    deadline_s = time.monotonic() + OPEN_TIMEOUT_S
    while (left_s := deadline_s - time.monotonic()) > 0:
        for document in channel.receive(left_s):
            options = document.get("open")
            if isinstance(options, dict):
                return options
    raise ChannelClosed("no options of a lab have arrived")


def _serve(channel: LineChannel, options: Mapping[str, Any]) -> None:
    end = run_lab(channel, options)
    document = {"outcome": end.outcome, "reason": end.reason, "seed": end.seed}
    document["run_dir"] = str(end.run_dir)
    channel.send({"end": {**document, **_report(end)}})


def _report(end: LabEnd) -> dict[str, str]:
    """Write the report of the lab's suite. Returns its path, or nothing if that fails."""
    from windtunnel.reports.page import write_suite_report

    try:
        return {"report": str(write_suite_report(end.suite_dir))}
    except OSError:
        return {}


if __name__ == "__main__":
    sys.exit(main())
