"""What this machine has, and what will be used instead of what it lacks.

Each probe answers one question with one Fact and never raises: a probe that cannot look says so.
Probes only look; the single thing made is a network namespace that dies with its first breath.
"""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ENGINE_TIMEOUT_S = 2.0
MEMORY_BYTES_MIN = 256 << 20
"""/dev/shm: log buffers and cnc files of two hosts, with room to spare."""
DISK_BYTES_MIN = 2 << 30
"""Captures and payloads of the three main scenarios, with room to spare."""

_PLUGIN_FOLDERS = (
    "~/.docker/cli-plugins",
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)


@dataclass(frozen=True)
class Fact:
    """One thing that a machine has or lacks."""

    name: str
    has: bool
    detail: str
    "What was found."
    instead: str = ""
    "What will be used or what to do when it is missing."
    needed_for: str = ""


def engine_address() -> str:
    """Where the Docker engine should listen: DOCKER_HOST or the usual socket."""
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def engine_version() -> str | None:
    """Version of the Docker engine that answers, or None; takes at most a few seconds."""
    address = engine_address()
    try:
        if address.startswith("unix://"):
            return _ask_unix_socket(address.removeprefix("unix://"))
        # Anything else (ssh, tcp with TLS) is the SDK's business; its import is slow, hence last.
        import docker

        client = docker.from_env(timeout=ENGINE_TIMEOUT_S)
        try:
            return str(client.version()["Version"])
        finally:
            client.close()
    except Exception:  # an engine that cannot be asked is, for us, no engine, whatever the reason
        return None


def _ask_unix_socket(path: str) -> str | None:
    import json
    from http.client import HTTPConnection, HTTPResponse

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ENGINE_TIMEOUT_S)
        connection.connect(path)
        http = HTTPConnection("localhost")
        http.sock = connection
        http.request("GET", "/version")
        answer: HTTPResponse = http.getresponse()
        return str(json.loads(answer.read())["Version"]) if answer.status == 200 else None


def default_fidelity() -> str:
    """What `windtunnel run` uses when it is not told: containers if an engine is reachable."""
    return "compose" if engine_version() is not None else "netns"


def _python() -> Fact:
    return Fact(
        "Python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()} at {sys.executable}",
        "Python 3.11 or newer is needed",
    )


def _library(name: str, needed_for: str) -> Fact:
    try:
        return Fact(name, True, version(name), needed_for=needed_for)
    except PackageNotFoundError:
        return Fact(name, False, "not installed", "make run sets up .venv", needed_for)


def _kernel_cache() -> Fact:
    from windtunnel.driver.kernels.cache import cache_root

    folder = Path(cache_root())
    files = sum(1 for _ in folder.rglob("*.nbc")) if folder.is_dir() else 0
    detail = f"{files} compiled kernels in {folder}" if files else f"empty: {folder}"
    return Fact("kernel cache", files > 0, detail, "the first run compiles (about a minute)")


def _privileges() -> Fact:
    from windtunnel.harness.orchestrate.labs import privileges

    lacking = privileges.missing()
    if not lacking:
        return Fact("privileges", True, "may make network namespaces and raw sockets")
    obstacles = privileges.obstacles()
    detail = f"lacks {', '.join(lacking)}"
    if obstacles:
        return Fact(
            "privileges", False, f"{detail}; {'; '.join(obstacles)}", "run as root, or compose"
        )
    return Fact("privileges", True, f"{detail}; a user namespace of its own will be used")


def _namespaces() -> Fact:
    from windtunnel.harness.orchestrate.lab import LabError
    from windtunnel.harness.orchestrate.labs import privileges
    from windtunnel.harness.orchestrate.processes import process

    own_user = ["--user", "--map-root-user"] if privileges.missing() else []
    try:
        process.run(["unshare", *own_user, "--net", "--", "true"], timeout_s=ENGINE_TIMEOUT_S)
        process.run(["ip", "-V"], timeout_s=ENGINE_TIMEOUT_S)
    except LabError as error:
        return Fact("network namespaces", False, str(error), "containers", "--fidelity netns")
    return Fact("network namespaces", True, "made one and left it", needed_for="--fidelity netns")


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
    detail = f"{found} at {engine_address()}" if found else f"nothing answers at {engine_address()}"
    return Fact(
        "Docker engine", found is not None, detail, "network namespaces", "--fidelity compose"
    )


def _compose() -> Fact:
    places = [Path(folder).expanduser() / "docker-compose" for folder in _PLUGIN_FOLDERS]
    found = next((str(path) for path in places if path.is_file()), shutil.which("docker-compose"))
    return Fact(
        "docker compose",
        found is not None,
        found or "plugin not found",
        "`windtunnel run` does without it",
        "docker compose up",
    )


def _netem() -> Fact:
    release = platform.release()
    modules = Path("/lib/modules") / release
    loaded = Path("/sys/module/sch_netem").exists()
    built_in = _mentions(modules / "modules.builtin", "sch_netem")
    loadable = _mentions(modules / "modules.dep", "sch_netem")
    has = loaded or built_in or loadable
    detail = (
        "loaded"
        if loaded
        else "in the kernel"
        if built_in
        else "module"
        if loadable
        else "none found"
    )
    return Fact(
        "netem", has, f"{detail} (kernel {release})", "--kernel uml, or weather by the relay"
    )


def _uml() -> Fact:
    from windtunnel.harness.uml import kernel

    purpose = "--kernel uml"
    try:
        found = kernel.find()
    except kernel.NoKernel as error:
        text = "weather by the relay, or a kernel that has netem"
        return Fact("User Mode Linux", False, str(error), text, purpose)
    has = kernel.has_module(found, "sch_netem")
    detail = f"{found.program}, kernel {found.release}, {'with' if has else 'without'} netem"
    return Fact("User Mode Linux", has, detail, "weather by the relay", purpose)


def _mentions(path: Path, word: str) -> bool:
    try:
        return word in path.read_text(errors="replace")
    except OSError:
        return False


def _space(name: str, folder: Path, least_bytes: int) -> Fact:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / (1 << 30):.1f} GiB free at {existing}"
    return Fact(name, free >= least_bytes, detail, f"{least_bytes / (1 << 30):.2f} GiB are wanted")


def _cores() -> Fact:
    count = len(os.sched_getaffinity(0))
    return Fact("processors", count >= 2, f"{count} usable", "runs work, but slowly")


def probes(runs: Path) -> list[Callable[[], Fact]]:
    """All questions, in the order they are told; `runs` is where run folders are written."""
    return [
        _python,
        lambda: _library("numba", "kernels of driver, relay and judge"),
        lambda: _library("scapy", "frames for people"),
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
        lambda: _space("memory files", Path("/dev/shm"), MEMORY_BYTES_MIN),
        lambda: _space("disk", runs.resolve(), DISK_BYTES_MIN),
        lambda: _library("pyaeron", "tests against the real Aeron"),
        lambda: _program("chromium", "chromium", "the test that opens the report"),
    ]


def facts(runs: Path) -> list[Fact]:
    """What the machine has; a probe that throws is a Fact of its own."""
    found = []
    for number, probe in enumerate(probes(runs)):
        try:
            found.append(probe())
        except Exception as error:
            found.append(Fact(f"probe {number}", False, f"could not look: {error!r}"))
    return found


def possible_fidelities(found: list[Fact]) -> list[str]:
    """Fidelities that the facts allow, the default first."""
    has = {fact.name: fact.has for fact in found}
    fidelities = []
    if has.get("Docker engine"):
        fidelities.append("compose")
    if has.get("privileges") and has.get("network namespaces") and has.get("tcpdump"):
        fidelities.append("netns")
    return fidelities
