"""The containers and networks of one lab on the container engine, and the applications in them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from windtunnel.harness.artifact import regular_file
from windtunnel.harness.installation import ROOT
from windtunnel.harness.orchestrate.lab import (
    MID,
    ApplicationRequest,
    LabApplication,
    LabError,
    Neighbor,
)
from windtunnel.harness.orchestrate.labs import (
    application_container,
    compose_file,
    engine,
    image_build,
)
from windtunnel.harness.orchestrate.labs.application_container import (
    ApplicationContainer,
    mount_option,
)
from windtunnel.harness.orchestrate.labs.compose_file import Mount
from windtunnel.harness.orchestrate.labs.host_agent import CONTROL_VARIABLE
from windtunnel.harness.orchestrate.processes.process import CleanupWatchdog
from windtunnel.harness.orchestrate.teardown import cleanup_watchdog
from windtunnel.harness.orchestrate.teardown.state import NAME_PREFIX, LabState, started_ticks_of

CONTROL_IN_CONTAINER = "/control"
CONTROL_SOURCE = "control"
RUNS_SOURCE = "./runs"


class EphemeralContainers:
    """The containers and networks of one lab. `start` creates them, and `remove` removes them."""

    def __init__(self, lab: LabState, records: Path, places: Sequence[str], runs: Path) -> None:
        self._state = lab
        self._places = tuple(places)
        self._runs = runs
        self._record = records.resolve() / f"{lab.token}.json"
        self._control = engine.control_folder(self._record)
        self._watchdog: CleanupWatchdog | None = None
        self._applications: list[ApplicationContainer] = []
        self._processes: dict[str, tuple[int, int]] = {}
        """The first process of each place, and when it was started."""

    def start(self) -> Path:
        document = compose_file.read()
        with engine.connection() as client:
            engine.ensure_image(client, compose_file.container_spec(document, MID).image)
            self._watchdog = CleanupWatchdog(
                [sys.executable, "-m", engine.__name__, str(self._record)],
                env=dict(os.environ),
                cwd=ROOT,
            )
            self._make_control()
            # A mount point below a read-only mount must exist before the container starts.
            (ROOT / "runs").mkdir(exist_ok=True)
            for name, labels in compose_file.shared_volumes(document).items():
                client.volumes.create(name, labels=labels)
            options = compose_file.network_options(document)
            networks = self._each(
                [place for place in self._places if place != MID],
                lambda host: client.networks.create(
                    self._name(host),
                    driver="bridge",
                    options=options,
                    labels=engine.labels_of(self._state),
                ),
            )
            containers = self._each(
                self._places,
                lambda place: self._create(
                    client, compose_file.container_spec(document, place), place
                ),
            )
            for network in networks[1:]:
                network.connect(containers[self._places.index(MID)])
            self._each(containers, lambda container: container.start())
        return self._control

    def _make_control(self) -> None:
        try:
            self._control.mkdir(mode=0o700, parents=True)
        except FileExistsError as error:
            raise LabError(
                f"{self._control}: a file or directory with this name already exists: remove it"
            ) from error

    @staticmethod
    def _each(items: Iterable[Any], work: Callable[[Any], Any]) -> list[Any]:
        """Call a function with each item concurrently, because the engine is slow."""
        with ThreadPoolExecutor(4) as executor:
            return list(executor.map(work, items))

    def _name(self, place: str) -> str:
        return f"{NAME_PREFIX}{self._state.token}-{place}"

    def _create(self, client: engine.Client, plan: compose_file.ContainerSpec, place: str) -> Any:
        return client.containers.create(
            plan.image,
            plan.command(place),
            name=self._name(place),
            hostname=place,
            network=self._name(self._places[0] if place == MID else place),
            cap_add=list(plan.cap_add),
            sysctls=plan.sysctls,
            shm_size=plan.shm_size_bytes,
            mounts=[mount_option(each) for each in self._placed(plan.mounts)],
            environment={CONTROL_VARIABLE: CONTROL_IN_CONTAINER},
            labels=engine.labels_of(self._state),
            # An application on a host is in another container, and shares this memory.
            ipc_mode=None if place == MID else "shareable",
        )

    def start_application(
        self, name: str, place: str, request: ApplicationRequest
    ) -> LabApplication:
        """Start an application in a container that shares network and memory of a host's."""
        plan = compose_file.container_spec(compose_file.read(), place)
        code = self._placed(
            [each for each in plan.mounts if each.source not in (CONTROL_SOURCE, RUNS_SOURCE)]
        )
        container = ApplicationContainer(name, request, engine.connect())
        self._applications.append(container)
        made = application_container.settings(
            request,
            host=self._name(place),
            name=f"{self._name(place)}.{len(self._applications)}",
            image=plan.image,
            labels=engine.labels_of(self._state),
            code=[replace(each, read_only=True) for each in code],
            runs=Path(self._runs),
        )
        container.start(made)
        return container

    def build_image(self, root: Path, folder: str, log: Path) -> str:
        """Build an image from a folder below `root`. Returns its name. Raises NotBuilt."""
        with engine.connection() as client:
            return image_build.build_image(client, root, folder, log)

    def neighbor(self, place: str) -> Neighbor:
        """Return the container of a place."""
        return Neighbor(self._name(place), engine.labels_of(self._state))

    @contextmanager
    def outside(self, place: str, directory: str) -> Iterator[Path]:
        """Open a directory of a container without following links in it, and yield its path on this
        machine. Raises LabError if this process may not read it, or if the engine is on another
        machine.
        """
        pid, started = self._processes.get(place, (0, 0))
        # Another process may get the id of one that has ended.
        if not pid or started_ticks_of(pid) != started:
            with engine.connection() as client:
                pid = int(client.containers.get(self._name(place)).attrs["State"]["Pid"])
            self._processes[place] = pid, started_ticks_of(pid)
        root = Path("/proc", str(pid), "root")
        if not os.access(root / "dev/shm", os.R_OK | os.X_OK):
            text = f"the memory of host {place} cannot be read: it needs root, and an engine "
            raise LabError(f"{text}on this machine")
        with regular_file.folder_below(root, PurePath(directory)) as path:
            yield path

    def _placed(self, mounts: Sequence[Mount]) -> list[Mount]:
        """Return mounts of compose.yaml with the absolute paths of their folders, and with this
        lab's folders for `runs` and `control`.
        """
        sources = {CONTROL_SOURCE: str(self._control), RUNS_SOURCE: str(self._runs)}
        placed = []
        for mount in mounts:
            source = sources.get(mount.source, mount.source)
            if source.startswith("."):
                source = str((ROOT / source).resolve())
            placed.append(replace(mount, source=source))
        return placed

    def remove(self) -> None:
        if self._watchdog is None:
            return
        for each in self._applications:
            each.remove()
        self._applications.clear()
        with engine.connection() as client:
            engine.remove_labelled(client, f"{engine.TOKEN_LABEL}={self._state.token}")
        shutil.rmtree(self._control, ignore_errors=True)
        self._watchdog.release(cleanup_watchdog.DONE)
        self._watchdog = None
