"""The evidence of a run as own checks see it: read-only, and read from the run folder when needed.

frames      what each host's interface sent and received, decoded
decisions   what fault rules did to which frames
counters    of the drivers, over time
log_lines   of applications
results     the figures of each stream, as in the report
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from windtunnel.harness.artifact.middlebox import frame_class
from windtunnel.harness.artifact.middlebox.decision import ACTIONS, NO_POSITION
from windtunnel.harness.artifact.regular_file import open_regular
from windtunnel.harness.artifact.run.result_row import ResultRow
from windtunnel.harness.checks.frame import Frame, address_text, frames_of
from windtunnel.harness.checks.series import Counter, counters_of
from windtunnel.harness.dissect.capture.pcap import Capture, address_halves, sent_by, sent_to
from windtunnel.harness.dissect.frames.flow import StreamFacts, learn_streams
from windtunnel.harness.dissect.frames.route import to_group
from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.verdict.checks.observed.found_streams import observed_of
from windtunnel.harness.verdict.core.evidence import Evidence as RunEvidence
from windtunnel.harness.verdict.core.finding import EvidenceMissing, present
from windtunnel.harness.verdict.results.observed_rows import observed_rows
from windtunnel.harness.verdict.results.result_rows import readings

LINE_BYTES_MAX = 1 << 16
"""Maximum length of a log line. The rest of a longer one is a line of its own."""


@dataclass(frozen=True)
class Stream:
    """A stream of the scenario, or one of its applications that is observed."""

    id: str
    stream_id: int
    sources: tuple[str, ...]
    "Hosts that publish it."
    destinations: tuple[str, ...]
    "Hosts that receive it."
    is_observed: bool
    "Whether applications send it, so that its content was not planned."


@dataclass(frozen=True)
class Decision:
    """What a fault rule did to one frame."""

    time_ns: int
    rule: str
    "Id of the rule in the scenario."
    action: str
    """`drop`, `duplicate`, `hold`, `swap`, `displace`, `corrupt`, `truncate`, `inject` or
    `readdress`."""
    source: str
    "The host from which the frame came."
    destination: str
    type: str
    "As in `Frame`."
    session_id: int
    stream_id: int
    position: int | None
    "Position of the frame's first byte, or None for a frame without one."
    length: int
    "Bytes that the frame occupies in its stream, aligned to 32."
    attempt: int
    "1 for the first transmission of this position in this direction."
    delay_ns: int


@dataclass(frozen=True)
class Event:
    """A pause, kill or partition that happened."""

    id: str
    host: str
    action: str
    began_ns: int
    ended_ns: int
    "Time at which the processes or the link continued, or 0."


class Evidence:
    """All evidence about one run. Methods raise EvidenceMissing for what the run lacks, which makes
    the check INCONCLUSIVE, and ValueError for a name that the scenario does not have.
    """

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        "The run folder, with all files."
        self._evidence = RunEvidence(run_dir)
        self._streams: dict[str, dict[tuple[int, int], StreamFacts]] = {}

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return self._case.name

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self._case.seed

    @property
    def fidelity(self) -> str:
        """Where it ran: `sim`, `netns` or `compose`."""
        return self._case.fidelity

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts."""
        return tuple(each.name for each in self._case.hosts)

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of the scenario, and the observed ones."""
        case = self._case
        found = (*case.traffic, *observed_of(self._evidence, case))
        return tuple(
            Stream(each.id, each.stream_id, each.publishers, each.subscribers, each.observed)
            for each in found
        )

    def frames(
        self,
        host: str,
        *,
        source: str | None = None,
        destination: str | None = None,
        type: str | None = None,
        stream_id: int | None = None,
        session_id: int | None = None,
    ) -> Iterator[Frame]:
        """Yield the frames that a host's interface sent and received, in the order of the capture.

        `source` and `destination` are hosts: `frames("b", source="a")` are those that arrived from
        a, `frames("a", source="a")` those that a has sent. What is addressed to a multicast group
        has all hosts as its destination. `type` is one of the types of `Frame`.
        """
        capture = self._capture(host)
        rows = capture.frames
        if type is not None:
            if type not in frame_class.CODES:
                names = ", ".join(frame_class.CODES)
                raise ValueError(f"expected one of the types {names}, found {type!r}")
            rows = rows[rows["frame_type"] == frame_class.CODES[type]]
        for name, wanted in (("stream_id", stream_id), ("session_id", session_id)):
            if wanted is not None:
                rows = rows[rows[name] == wanted]
        if source is not None:
            rows = rows[sent_by(rows, self._address(source))]
        if destination is not None:
            rows = rows[sent_to(rows, self._address(destination)) | to_group(rows)]
        yield from frames_of(rows, capture.buf, self._streams_at(host), self._name_of)

    def decisions(self, rule: str | None = None) -> Iterator[Decision]:
        """Yield what the fault rules did to frames, or what one of them did, in order."""
        case = self._case
        ids = [each.id for each in case.faults]
        if rule is not None and rule not in ids:
            raise ValueError(f"expected a rule of the scenario ({', '.join(ids)}), found {rule!r}")
        for row in present(self._evidence.decisions):
            name = ids[row["rule"]] if row["rule"] < len(ids) else ""
            if rule is not None and name != rule:
                continue
            source, destination = case.directions[row["link"]]
            position = int(row["position"])
            yield Decision(
                time_ns=int(row["time_ns"]),
                rule=name,
                action=ACTIONS[int(row["action"])],
                source=source,
                destination=destination,
                type=frame_class.NAMES[int(row["frame_type"])],
                session_id=int(row["session_id"]),
                stream_id=int(row["stream_id"]),
                position=None if position == NO_POSITION else position,
                length=int(row["frame_length"]),
                attempt=int(row["attempt"]),
                delay_ns=int(row["delay_ns"]),
            )

    def counters(self, host: str) -> tuple[Counter, ...]:
        """Return the counters of a host's driver."""
        self._address(host)
        return counters_of(present(self._evidence.host_counters(host)))

    def log_lines(self, application: str) -> Iterator[str]:
        """Yield the lines of an application's log, without their ends."""
        case = self._case
        ids = [each.id for each in case.applications]
        if application not in ids:
            text = f"expected an application of the scenario ({', '.join(ids) or 'it has none'})"
            raise ValueError(f"{text}, found {application!r}")
        host = case.applications[ids.index(application)].host
        log = self._evidence.folder.host(host).application(application).log
        try:
            with open_regular(log) as file:
                while line := file.readline(LINE_BYTES_MAX):
                    yield line.decode(errors="replace").rstrip("\r\n")
        except OSError as error:
            raise EvidenceMissing(f"{self._evidence.name_of(log)}: {error.strerror}") from error

    def events(self) -> tuple[Event, ...]:
        """Return the pauses, kills and partitions that happened."""
        return tuple(
            Event(each.id, each.host, each.action, each.began_ns, each.ended_ns)
            for each in present(self._evidence.host_events)
        )

    def results(self) -> tuple[ResultRow, ...]:
        """Return the figures of each stream at each of its subscribers, as in the report."""
        case = self._case
        planned = (each.row for each in readings(self._evidence, case))
        return (*planned, *observed_rows(self._evidence, case))

    @property
    def _case(self) -> Case:
        return present(self._evidence.case)

    def _capture(self, host: str) -> Capture:
        self._address(host)
        return present(self._evidence.capture(host))

    def _streams_at(self, host: str) -> dict[tuple[int, int], StreamFacts]:
        if host not in self._streams:
            self._streams[host] = learn_streams(self._capture(host).frames)
        return self._streams[host]

    def _address(self, host: str) -> str:
        """Return the address of a host. Raises ValueError if there is no such host."""
        if host not in self.hosts:
            raise ValueError(f"expected a host ({', '.join(self.hosts)}), found {host!r}")
        return self._case.address(host)

    @cached_property
    def _names(self) -> dict[tuple[int, int], str]:
        return {address_halves(each.address): each.name for each in self._case.hosts}

    def _name_of(self, high: int, low: int) -> str:
        return self._names.get((high, low)) or address_text(high, low)
