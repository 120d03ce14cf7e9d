"""Writes the result file of an archive workload, whether the workload succeeds or fails."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.recording import RecorderFacts
from windtunnel.harness.workload.stop import error_text


@contextmanager
def write_at_end(facts: PublisherFacts | RecorderFacts, document: Path) -> Iterator[None]:
    """Write a workload's result file when the `with` block ends, with the end time and any
    exception that the block raised.
    """
    try:
        yield
    except BaseException as error:
        facts.error = error_text(error)
        raise
    finally:
        facts.ended_ns = time.time_ns()
        document.parent.mkdir(parents=True, exist_ok=True)
        facts.write(document)
