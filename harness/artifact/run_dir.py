"""Every path of a suite folder and of a run folder; nobody else joins them by hand.

runs/matrix-<suite-id>/        matrix.html  matrix.json  a suite folder for each pair
runs/<suite-id>/               report.html  suite.json
  <scenario with / as ->-s<seed>/
    run.json  scenario.yaml  case.json  repro.txt  payload.bin
    decisions.bin  ledger.json  verdict.json  relay.log  netem.json  netem.log
    host-events.json                        of a run whose hosts are paused or killed
    replayed.bin  replay.json               of a run that repeats another's decisions
    simulation.json  simulator.log          in place of relay.log, of a simulated run
    captures/<host>.pcap  captures/<host>.json  captures/<host>.log
    hosts/<host>/
      driver.log  sampler.log  saboteur.log  counters.bin  counters.json  cnc-errors.json  snmp.json
      pressure.json  logs.json  logs/<publications or images>-<registration id>.logbuffer
      publisher-<traffic>.json   .bin  .log
      subscriber-<traffic>.json  .index.bin  .messages.bin  .frames.bin  .log
      archive.log  archive/archive.catalog  archive/<recording>-<position>.rec
      recorder-<traffic>.json  .log
"""

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


def new_suite_id(now_utc: datetime) -> str:
    """A suite id that sorts by time and that two suites of one second do not share."""
    return f"{now_utc:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def run_name(scenario: str, seed: int) -> str:
    """The name of the run folder of one scenario with one seed."""
    return f"{scenario.replace('/', '-')}-s{seed}"


@dataclass(frozen=True)
class SuiteDir:
    """The folder of one invocation: several runs and their report."""

    path: Path

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def document(self) -> Path:
        return self.path / "suite.json"

    def run(self, scenario: str, seed: int) -> "RunDir":
        """The folder of one run, whether it exists or not."""
        return RunDir(self.path / run_name(scenario, seed))

    def runs(self) -> list["RunDir"]:
        """The folders of all runs that left a manifest, by name."""
        return [RunDir(found.parent) for found in sorted(self.path.glob("*/run.json"))]


@dataclass(frozen=True)
class MatrixDir:
    """The folder of one matrix: a suite for each pair, and the page of all cells."""

    path: Path

    @property
    def page(self) -> Path:
        return self.path / "matrix.html"

    @property
    def document(self) -> Path:
        return self.path / "matrix.json"

    def suite(self, name: str) -> SuiteDir:
        return SuiteDir(self.path / name)


@dataclass(frozen=True)
class PublisherFiles:
    """What one publisher leaves."""

    document: Path
    offers: Path
    log: Path


@dataclass(frozen=True)
class SubscriberFiles:
    """What one subscriber leaves."""

    document: Path
    index: Path
    messages: Path
    frames: Path
    log: Path


@dataclass(frozen=True)
class RecorderFiles:
    """What the one leaves who has an archive record a stream."""

    document: Path
    log: Path


@dataclass(frozen=True)
class HostDir:
    """What one host leaves, by host name."""

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
    def snmp(self) -> Path:
        return self.path / "snmp.json"

    @property
    def pressure(self) -> Path:
        return self.path / "pressure.json"

    @property
    def held_logs(self) -> Path:
        return self.path / "logs.json"

    def put_aside(self, number: int) -> None:
        """Keep what a sampler wrote of a driver that was killed, the so-and-so-many-th."""
        past = self.path / f"before-{number}"
        past.mkdir(parents=True, exist_ok=True)
        for file in (self.counters, self.counter_samples, self.pressure, self.held_logs):
            if file.exists():
                file.rename(past / file.name)

    @property
    def archive_log(self) -> Path:
        return self.path / "archive.log"

    @property
    def archive(self) -> Path:
        """The directory of the host's archive, as the archive itself keeps it."""
        return self.path / "archive"

    def recorder(self, traffic_id: str) -> RecorderFiles:
        stem = f"recorder-{traffic_id}"
        return RecorderFiles(self.path / f"{stem}.json", self.path / f"{stem}.log")

    def log_buffer(self, folder: str, registration_id: int) -> Path:
        """The copy of a log buffer from one of the two folders of a driver's directory."""
        return self.path / "logs" / f"{folder}-{registration_id}.logbuffer"

    def publisher(self, traffic_id: str) -> PublisherFiles:
        stem = f"publisher-{traffic_id}"
        return PublisherFiles(
            document=self.path / f"{stem}.json",
            offers=self.path / f"{stem}.bin",
            log=self.path / f"{stem}.log",
        )

    def subscriber(self, traffic_id: str) -> SubscriberFiles:
        stem = f"subscriber-{traffic_id}"
        return SubscriberFiles(
            document=self.path / f"{stem}.json",
            index=self.path / f"{stem}.index.bin",
            messages=self.path / f"{stem}.messages.bin",
            frames=self.path / f"{stem}.frames.bin",
            log=self.path / f"{stem}.log",
        )


@dataclass(frozen=True)
class RunDir:
    """The folder of one run: one scenario with one seed."""

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
        """The decisions that this run was to repeat, as `decisions` of the run that made them."""
        return self.path / "replayed.bin"

    @property
    def replay(self) -> Path:
        """How far they were repeated."""
        return self.path / "replay.json"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.json"

    @property
    def netem(self) -> Path:
        """What the kernel's netem was told and what it did."""
        return self.path / "netem.json"

    @property
    def host_events(self) -> Path:
        """What befell the hosts on purpose."""
        return self.path / "host-events.json"

    @property
    def netem_log(self) -> Path:
        """What `tc` printed."""
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
    def analysis(self) -> Path:
        """What its captures tell, in plain words, if anybody has asked."""
        return self.path / "analysis.json"

    @property
    def analysis_page(self) -> Path:
        """The same with charts and tables."""
        return self.path / "analysis.html"

    @property
    def captures(self) -> Path:
        return self.path / "captures"

    @property
    def hosts(self) -> Path:
        return self.path / "hosts"

    def capture(self, host: str) -> Path:
        """The packets of a host's interface, both directions."""
        return self.captures / f"{host}.pcap"

    def capture_statistics(self, host: str) -> Path:
        """How many packets the capture received and how many the kernel dropped."""
        return self.captures / f"{host}.json"

    def capture_log(self, host: str) -> Path:
        """What the capture tool printed."""
        return self.captures / f"{host}.log"

    def host(self, name: str) -> HostDir:
        return HostDir(self.hosts / name)

    def make(self) -> None:
        """Create the folder and its fixed subfolders."""
        for folder in (self.path, self.captures, self.hosts):
            folder.mkdir(parents=True, exist_ok=True)
