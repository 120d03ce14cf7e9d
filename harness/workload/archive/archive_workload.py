"""The workloads that use an archive: what each of them does, and the document that it writes.

recorder, replicator    hosts/<host>/recorder-<id>.json
replayer                hosts/<host>/publisher-<id>.json: it takes the place of a publisher
"""

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.workload.archive.recorder import record
from windtunnel.harness.workload.archive.replayer import replay
from windtunnel.harness.workload.archive.replicator import replicate
from windtunnel.harness.workload.options import Options
from windtunnel.harness.workload.publisher_facts import begin_facts
from windtunnel.harness.workload.routine import Routine, Surroundings
from windtunnel.harness.workload.routine import run as run_routine
from windtunnel.harness.workload.stop import Stop, error_text


class ArchiveWorkload:
    """A recorder, replayer or replicator, and its document."""

    def __init__(self, options: Options, surroundings: Surroundings) -> None:
        traffic, files = options.traffic, options.files
        self._epoch_ns = surroundings.epoch_ns
        self._facts: PublisherFacts | RecorderFacts
        self.routine: Routine[None]
        if options.role == "replayer":
            self._facts = replay_facts = begin_facts(traffic, surroundings.epoch_ns())
            self._document = files.publisher(traffic.id).document
            self.routine = replay(options, replay_facts, surroundings)
        else:
            self._facts = facts = RecorderFacts(traffic.stream_id, surroundings.epoch_ns(), 0, None)
            self._document = files.recorder(traffic.id).document
            workload = record if options.role == "recorder" else replicate
            self.routine = workload(options, facts, surroundings)

    def close(self, error: str | None) -> None:
        """Write the document. `error` describes the failure that ended the routine, if any."""
        self._facts.error = error
        self._facts.ended_ns = self._epoch_ns()
        self._document.parent.mkdir(parents=True, exist_ok=True)
        self._facts.write(self._document)


def run(options: Options, stop: Stop) -> None:
    """Run a workload to its end in this process. Writes its document even on failure."""
    workload = ArchiveWorkload(options, Surroundings.of_process(options))
    error = None
    try:
        run_routine(workload.routine, stop)
    except BaseException as failure:
        error = error_text(failure)
        raise
    finally:
        workload.close(error)
