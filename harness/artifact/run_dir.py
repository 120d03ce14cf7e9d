"""The layout of run folders. No other module composes paths within them.

runs/<suite-id>/               see `suite_dir`
  <scenario with / as ->-s<seed>/
    run.json  scenario.yaml  case.json  repro.txt  payload.bin
    decisions.bin  ledger.json  verdict.json  relay.log  netem.json  netem.log
    host-events.json                        if host events pause or kill processes
    link-requests.json  link-changes.json   if a program controls the run
    replayed.bin  replay.json               if the run replays the decisions of another
    simulation.json  simulator.log          instead of relay.log, in a simulated run
    own-checks.json  own-checks-<index>.log if the scenario has checks of its own
    captures/<host>.pcap or .pcap.gz  captures/<host>.json  captures/<host>.log
    hosts/<host>/
      driver.log  sampler.log  saboteur.log  counters.bin  counters.json  cnc-errors.json  snmp.json
      pressure.json  logs.json  logs/<publications or images>-<registration id>.logbuffer
      publisher-<traffic>.json   .bin  .log
      subscriber-<traffic>.json  .index.bin  .messages.bin  .times.bin  .frames.bin  .log
      archive.log  archive/archive.catalog  archive/<recording>-<position>.rec
      recorder-<traffic>.json  .log
      application-<id>.log  .launcher.log  application-<id>/
"""

import os
from dataclasses import dataclass
from pathlib import Path

ROLE_OF_FILES = {"replayer": "publisher", "replicator": "recorder"}
"""Roles whose programs write files under another role's name, mapped to that role."""
COMPRESSED_SUFFIX = ".gz"


@dataclass(frozen=True)
class PublisherFiles:
    """The files of one publisher in a host's folder."""

    document: Path
    offers: Path
    times: Path
    log: Path


@dataclass(frozen=True)
class SubscriberFiles:
    """The files of one subscriber in a host's folder."""

    document: Path
    index: Path
    messages: Path
    times: Path
    frames: Path
    log: Path


@dataclass(frozen=True)
class RecorderFiles:
    """The files of one recorder, the workload that makes an archive record a stream."""

    document: Path
    log: Path


@dataclass(frozen=True)
class ApplicationFiles:
    """The files of one application, a program of the user."""

    folder: Path
    """The application's working folder."""

    log: Path
    launcher_log: Path
    """The log of the program that started the application."""

    build_log: Path
    """The output of the build of its image."""


@dataclass(frozen=True)
class HostDir:
    """The files of one host in a run folder."""

    path: Path

    @property
    def driver_log(self) -> Path:
        return self.path / "driver.log"

    @property
    def sampler_log(self) -> Path:
        return self.path / "sampler.log"

    @property
    def saboteur_log(self) -> Path:
        return self.path / "saboteur.log"

    @property
    def counter_samples(self) -> Path:
        return self.path / "counters.bin"

    @property
    def counters(self) -> Path:
        return self.path / "counters.json"

    @property
    def cnc_errors(self) -> Path:
        return self.path / "cnc-errors.json"

    @property
    def loss_report(self) -> Path:
        """The path of a simulated driver's loss report, without the unused end of the file."""
        return self.path / "loss-report.dat"

    @property
    def snmp(self) -> Path:
        return self.path / "snmp.json"

    @property
    def pressure(self) -> Path:
        return self.path / "pressure.json"

    @property
    def log_index(self) -> Path:
        return self.path / "logs.json"

    def save_generation(self, number: int) -> None:
        """Move the sampler's files about a killed driver to the subfolder `before-<number>`, so
        that the files about the restarted driver do not replace them.
        """
        folder = self.path / f"before-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (self.counters, self.counter_samples, self.pressure, self.log_index):
            if file.exists():
                file.rename(folder / file.name)

    @property
    def archive_log(self) -> Path:
        return self.path / "archive.log"

    @property
    def archive(self) -> Path:
        """The path of the host's archive directory."""
        return self.path / "archive"

    def recorder(self, traffic_id: str) -> RecorderFiles:
        stem = f"recorder-{traffic_id}"
        return RecorderFiles(self.path / f"{stem}.json", self.path / f"{stem}.log")

    def application(self, application_id: str) -> ApplicationFiles:
        stem = f"application-{application_id}"
        return ApplicationFiles(
            folder=self.path / stem,
            log=self.path / f"{stem}.log",
            launcher_log=self.path / f"{stem}.launcher.log",
            build_log=self.path / f"{stem}.build.log",
        )

    def log_buffer(self, folder: str, registration_id: int) -> Path:
        """Return the path of a copied log file, given its folder in the driver's directory and its
        registration id.
        """
        return self.path / "logs" / f"{folder}-{registration_id}.logbuffer"

    def publisher(self, traffic_id: str) -> PublisherFiles:
        stem = f"publisher-{traffic_id}"
        return PublisherFiles(
            document=self.path / f"{stem}.json",
            offers=self.path / f"{stem}.bin",
            times=self.path / f"{stem}.times.bin",
            log=self.path / f"{stem}.log",
        )

    def subscriber(self, traffic_id: str) -> SubscriberFiles:
        stem = f"subscriber-{traffic_id}"
        return SubscriberFiles(
            document=self.path / f"{stem}.json",
            index=self.path / f"{stem}.index.bin",
            messages=self.path / f"{stem}.messages.bin",
            times=self.path / f"{stem}.times.bin",
            frames=self.path / f"{stem}.frames.bin",
            log=self.path / f"{stem}.log",
        )


@dataclass(frozen=True)
class RunDir:
    """The folder of one run, for one scenario with one seed."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "run.json"

    @property
    def scenario(self) -> Path:
        return self.path / "scenario.yaml"

    @property
    def case(self) -> Path:
        return self.path / "case.json"

    @property
    def repro(self) -> Path:
        return self.path / "repro.txt"

    @property
    def payload(self) -> Path:
        return self.path / "payload.bin"

    @property
    def decisions(self) -> Path:
        return self.path / "decisions.bin"

    @property
    def replayed(self) -> Path:
        """The path of the file with the decisions that this run replays. It is a copy of the
        original run's file.
        """
        return self.path / "replayed.bin"

    @property
    def replay(self) -> Path:
        """The path of the document that compares this replay with the original run."""
        return self.path / "replay.json"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.json"

    @property
    def lab_requests(self) -> Path:
        """The path of what a program has asked of a live lab, with times."""
        return self.path / "lab-requests.json"

    @property
    def link_requests(self) -> Path:
        """The path of the changes of links that a live run has requested."""
        return self.path / "link-requests.json"

    @property
    def link_changes(self) -> Path:
        """The path of the changes of links that the relay has applied, with their times."""
        return self.path / "link-changes.json"

    @property
    def netem(self) -> Path:
        """The path of the document with netem's configuration and counters."""
        return self.path / "netem.json"

    @property
    def host_events(self) -> Path:
        """The path of the document with the host events that were applied in this run."""
        return self.path / "host-events.json"

    @property
    def netem_log(self) -> Path:
        """The path of the log with the output of `tc`."""
        return self.path / "netem.log"

    @property
    def relay_log(self) -> Path:
        return self.path / "relay.log"

    @property
    def simulation(self) -> Path:
        return self.path / "simulation.json"

    @property
    def simulator_log(self) -> Path:
        return self.path / "simulator.log"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def own_checks(self) -> Path:
        """The path of the document with the results of the scenario's own checks."""
        return self.path / "own-checks.json"

    def own_check_results(self, index: int) -> Path:
        """Return the path of the results of a file with checks while they are executed."""
        return self.path / f"own-checks-{index}.results"

    def own_check_log(self, index: int) -> Path:
        """Return the path of what the checks of a file have printed."""
        return self.path / f"own-checks-{index}.log"

    @property
    def analysis(self) -> Path:
        """The path of the analysis of the run's captures. The file exists only if an analysis was
        requested.
        """
        return self.path / "analysis.json"

    @property
    def analysis_page(self) -> Path:
        """The path of the analysis as an HTML page with charts and tables."""
        return self.path / "analysis.html"

    @property
    def captures(self) -> Path:
        return self.path / "captures"

    @property
    def hosts(self) -> Path:
        return self.path / "hosts"

    def capture(self, host: str) -> Path:
        """Return the path of a host's packet capture, with packets in both directions.

        This is the path of the compressed file if only that file exists.
        """
        plain = self.captures / f"{host}.pcap"
        compressed = self.captures / f"{host}.pcap{COMPRESSED_SUFFIX}"
        # Unlike methods of Path, this is false if the folder must not be searched.
        is_compressed = os.path.exists(compressed) and not os.path.exists(plain)
        return compressed if is_compressed else plain

    def capture_statistics(self, host: str) -> Path:
        """Return the path of a capture's statistics: packets received and packets dropped."""
        return self.captures / f"{host}.json"

    def capture_log(self, host: str) -> Path:
        """Return the path of the capture tool's output."""
        return self.captures / f"{host}.log"

    def host(self, name: str) -> HostDir:
        return HostDir(self.hosts / name)

    def make(self) -> None:
        """Create the run folder and its fixed subfolders."""
        for folder in (self.path, self.captures, self.hosts):
            folder.mkdir(parents=True, exist_ok=True)
