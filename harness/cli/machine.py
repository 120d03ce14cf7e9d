"""Probes that determine which prerequisites this machine has, and the fallback for each missing
one.

Each probe returns one Fact. An exception in a probe is reported as a Fact, too. Probes change
nothing, except that one creates a network namespace, which is removed at once.
"""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ENGINE_TIMEOUT_S = 2.0
MEMORY_BYTES_MIN = 256 << 20
"""Required free space in /dev/shm: log buffers and cnc files of two hosts, with a margin."""
DISK_BYTES_MIN = 2 << 30
"""Required free disk space: captures and payloads of the three main scenarios, with a margin."""

SIMULATION_NEEDS = ("Python", "numba", "scapy", "pydantic")
"""Names of the facts that `--fidelity sim` needs."""

_PLUGIN_FOLDERS = (
    "~/.docker/cli-plugins",
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)


@dataclass(frozen=True)
class Fact:
    """One prerequisite, and whether this machine has it."""

    name: str
    has: bool
    detail: str
    "What the probe found."
    instead: str = ""
    "The fallback, or how to install the prerequisite. Shown if it is missing."
    needed_for: str = ""


def engine_address() -> str:
    """Return the Docker engine's address: DOCKER_HOST, or the default socket."""
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def engine_version() -> str | None:
    """Return the Docker engine's version, or None if the engine does not respond within a few
    seconds.
    """
    address = engine_address()
    try:
        if address.startswith("unix://"):
            return _version_from_unix_socket(address.removeprefix("unix://"))
        # The SDK handles all other schemes (ssh, tcp with TLS). It is imported last because that is
        # slow.
        import docker

        client = docker.from_env(timeout=ENGINE_TIMEOUT_S)
        try:
            return str(client.version()["Version"])
        finally:
            client.close()
    except Exception:  # An engine that does not respond cannot be used, whatever the reason.
        return None


def _version_from_unix_socket(path: str) -> str | None:
    import json
    from http.client import HTTPConnection, HTTPResponse

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ENGINE_TIMEOUT_S)
        connection.connect(path)
        http = HTTPConnection("localhost")
        http.sock = connection
        http.request("GET", "/version")
        response: HTTPResponse = http.getresponse()
        return str(json.loads(response.read())["Version"]) if response.status == 200 else None


def default_fidelity(supported: Sequence[Collection[str]] = ()) -> str:
    """Return the default of `--fidelity`: compose if a Docker engine responds, else netns.

    If scenarios do not support it, the default is netns or sim. `supported` has the fidelity levels
    that each scenario supports.
    """
    usual = "compose" if engine_version() is not None else "netns"
    common = [
        each for each in (usual, "netns", "sim") if all(each in levels for levels in supported)
    ]
    return common[0] if common else usual


def _python() -> Fact:
    return Fact(
        "Python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} at {sys.executable}",
        "install Python 3.11 or newer",
    )


def _library(name: str, needed_for: str) -> Fact:
    try:
        return Fact(name, True, version(name), needed_for=needed_for)
    except PackageNotFoundError:
        return Fact(name, False, "not installed", "`make run` sets up .venv", needed_for)


def _kernel_cache() -> Fact:
    from windtunnel.driver.kernels.cache import prebuilt_counts
    from windtunnel.driver.kernels.sources import cache_root

    folder = Path(cache_root())
    files = sum(1 for _ in folder.rglob("*.image")) if folder.is_dir() else 0
    detail = f"{files} compiled kernels in {folder}" if files else f"empty: {folder}"
    usable, other = prebuilt_counts()
    if usable or other:
        detail += f"; package windtunnel_kernels: {usable} modules match, {other} do not"
    files += usable
    return Fact(
        "kernel cache", files > 0, detail, "the first run compiles the numba kernels (1 minute)"
    )


def _privileges() -> Fact:
    from windtunnel.harness.orchestrate.labs import privileges

    lacking = privileges.missing()
    if not lacking:
        return Fact("privileges", True, "can create network namespaces and raw sockets")
    obstacles = privileges.obstacles()
    detail = f"lacks {', '.join(lacking)}"
    if obstacles:
        return Fact(
            "privileges",
            False,
            f"{detail}; {'; '.join(obstacles)}",
            "run as root, or use --fidelity compose or sim",
        )
    return Fact("privileges", True, f"{detail}; a separate user namespace will be used")


def _namespaces() -> Fact:
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.processes import process

    own_user = ["--user", "--map-root-user"] if privileges.missing() else []
    try:
        process.run(["unshare", *own_user, "--net", "--", "true"], timeout_s=ENGINE_TIMEOUT_S)
        process.run(["ip", "-V"], timeout_s=ENGINE_TIMEOUT_S)
    except LabError as error:
        fallback = "--fidelity compose or sim"
        return Fact("network namespaces", False, str(error), fallback, "--fidelity netns")
    return Fact("network namespaces", True, "created one", needed_for="--fidelity netns")


def _program(name: str, package: str, needed_for: str, instead: str = "") -> Fact:
    found = shutil.which(name)
    return Fact(
        name,
        found is not None,
        found or "not on PATH",
        instead or f"apt-get install {package}",
        needed_for,
    )


def _engine() -> Fact:
    found = engine_version()
    detail = f"{found} at {engine_address()}" if found else f"no response from {engine_address()}"
    return Fact(
        "Docker engine",
        found is not None,
        detail,
        "--fidelity netns or sim",
        "--fidelity compose",
    )


def _compose() -> Fact:
    places = [Path(folder).expanduser() / "docker-compose" for folder in _PLUGIN_FOLDERS]
    found = next((str(path) for path in places if path.is_file()), shutil.which("docker-compose"))
    return Fact(
        "docker compose",
        found is not None,
        found or "plugin not found",
        "not needed by `windtunnel run`",
        "docker compose up",
    )


def _netem() -> Fact:
    release = platform.release()
    modules = Path("/lib/modules") / release
    loaded = Path("/sys/module/sch_netem").exists()
    built_in = _mentions_netem(modules / "modules.builtin")
    loadable = _mentions_netem(modules / "modules.dep")
    has = loaded or built_in or loadable
    detail = (
        "loaded"
        if loaded
        else "built into the kernel"
        if built_in
        else "module"
        if loadable
        else "not found"
    )
    return Fact("netem", has, f"{detail} (kernel {release})", "use --kernel uml or --backend relay")


def _uml() -> Fact:
    from windtunnel.harness.uml import kernel

    purpose = "--kernel uml"
    try:
        found = kernel.find()
    except kernel.NoKernel as error:
        fallback = "--backend relay, or a kernel that has netem"
        return Fact("User Mode Linux", False, str(error), fallback, purpose)
    has = kernel.has_module(found, "sch_netem")
    detail = f"{found.program}, kernel {found.release}, {'with' if has else 'without'} netem"
    return Fact("User Mode Linux", has, detail, "--backend relay", purpose)


def _mentions_netem(path: Path) -> bool:
    try:
        return "sch_netem" in path.read_text(errors="replace")
    except OSError:
        return False


def _space(name: str, folder: Path, needed_bytes: int) -> Fact:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / (1 << 30):.1f} GiB free at {existing}"
    needed = f"{needed_bytes / (1 << 30):.2f} GiB are needed"
    return Fact(name, free >= needed_bytes, detail, needed)


def _cores() -> Fact:
    count = len(os.sched_getaffinity(0))
    return Fact("processors", count >= 2, f"{count} usable", "runs are slow")


def probes(runs: Path) -> list[Callable[[], Fact]]:
    """Return all probes, each a function that checks one prerequisite, in output order. `runs` is
    the folder that contains the run folders.
    """
    return [
        _python,
        lambda: _library("numba", "kernels of driver, relay and judge"),
        lambda: _library("scapy", "forged frames, decoding of frames"),
        lambda: _library("pydantic", "scenarios"),
        _kernel_cache,
        _cores,
        _privileges,
        _namespaces,
        lambda: _program("tcpdump", "tcpdump", "captures"),
        _engine,
        _compose,
        _netem,
        _uml,
        lambda: _space("shared memory", Path("/dev/shm"), MEMORY_BYTES_MIN),
        lambda: _space("disk", runs.resolve(), DISK_BYTES_MIN),
        lambda: _library("pyaeron", "the Aeron C driver as a peer"),
        lambda: _program("chromium", "chromium", "the test of the report in a browser"),
    ]


def facts(runs: Path) -> list[Fact]:
    """Run all probes. A probe that raises an exception is reported as a failed prerequisite."""
    found = []
    for number, probe in enumerate(probes(runs)):
        try:
            found.append(probe())
        except Exception as error:
            found.append(Fact(f"probe {number}", False, f"the probe failed: {error!r}"))
    return found


def possible_fidelities(found: list[Fact]) -> list[str]:
    """Return the fidelities that this machine can run, with the default fidelity first."""
    has = {fact.name: fact.has for fact in found}
    fidelities = []
    if has.get("Docker engine"):
        fidelities.append("compose")
    if has.get("privileges") and has.get("network namespaces") and has.get("tcpdump"):
        fidelities.append("netns")
    if all(has.get(name) for name in SIMULATION_NEEDS):
        fidelities.append("sim")
    return fidelities
