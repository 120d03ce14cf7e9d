"""Containers and networks that the labs of a test have left in the container engine."""

import json
import os
import subprocess

from windtunnel.harness.orchestrate.labs.engine import OWNER_LABEL, TOKEN_LABEL, owner_is_alive


def leftovers() -> list[str]:
    """Return the identifiers of all containers and networks of labs, except those of other live
    processes: the tests of `uml` run beside those in containers, and use the same engine.
    """
    found = []
    for command in (["ps", "--all"], ["network", "ls"]):
        argv = ["docker", *command, "--filter", f"label={TOKEN_LABEL}"]
        argv += ["--format", f'{{{{.ID}}}} {{{{.Label "{OWNER_LABEL}"}}}}']
        listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            name, _, owner = line.partition(" ")
            if not owner_is_alive(owner) or json.loads(owner)["pid"] == os.getpid():
                found.append(name)
    return found
