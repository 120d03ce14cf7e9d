"""Which fidelity level a test uses, and why a machine cannot use one.

requested      that one: a test that does not support it is skipped, a machine that lacks it fails
not requested  netns, else sim, as far as the test supports them, else the test is skipped
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache

FIDELITIES = ("netns", "compose", "sim")
_PREFERRED = ("netns", "sim", "compose")
_TIMEOUT_S = 10.0
_TRIAL = ("unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "true")


class NotSupported(Exception):
    """Raised if a test cannot run here, for a reason that is not a failure."""


class NotPossible(Exception):
    """Raised if this machine lacks what was requested explicitly."""


def choose(
    supported: Collection[str],
    requested: str | None,
    obstacle: Callable[[str], str] | None = None,
) -> str:
    """Return the fidelity level to use, among those that a test supports.

    Raises NotSupported with the reason if there is none, or NotPossible if `requested` is supported
    by the test, but not by this machine.
    """
    obstacle = obstacle or obstacle_to
    if requested is not None:
        if requested not in supported:
            levels = ", ".join(each for each in FIDELITIES if each in supported)
            raise NotSupported(f"does not support fidelity {requested}, but {levels}")
        if reason := obstacle(requested):
            raise NotPossible(f"fidelity {requested} was requested, but {reason}")
        return requested
    reasons = []
    for each in _PREFERRED:
        if each in supported:
            reason = obstacle(each)
            if not reason:
                return each
            reasons.append(f"{each}: {reason}")
    raise NotSupported("; ".join(reasons))


@cache
def obstacle_to(fidelity: str) -> str:
    """Return why this machine cannot use a fidelity level, or an empty string."""
    if fidelity == "compose":
        from windtunnel.harness.cli.machine import engine_address, engine_version

        return "" if engine_version() else f"no Docker engine responds at {engine_address()}"
    return _obstacle_to_namespaces() if fidelity == "netns" else ""


def _obstacle_to_namespaces() -> str:
    from windtunnel.harness.orchestrate.labs import labs, privileges

    programs = labs.missing_programs()
    if programs:
        return f"this machine lacks {', '.join(programs)}"
    lacking = privileges.missing()
    if not lacking:
        return ""
    text = f"network namespaces need {', '.join(lacking)}, which this process lacks"
    reasons = privileges.obstacles()
    if not reasons:
        tried = _tried_in_user_namespace()
        reasons = [f"a user namespace cannot be used: {tried}"] if tried else []
    return f"{text} ({'; '.join(reasons)})" if reasons else ""


def _tried_in_user_namespace() -> str:
    """Return why this user cannot make networks in a user namespace, or an empty string."""
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.processes import process

    try:
        process.run(_TRIAL, timeout_s=_TIMEOUT_S)
    except LabError as error:
        return str(error)
    return ""
