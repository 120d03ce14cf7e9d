"""Leaving a document behind, whatever happens: how a workload of an archive ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel.harness.artifact.host.application import PublisherFacts
from windtunnel.harness.artifact.host.recording import RecorderFacts


@contextmanager
def leaving(facts: PublisherFacts | RecorderFacts, document: Path) -> Iterator[None]:
    """Write the facts when the block is over, with its end and with what it raised."""
    try:
        yield
    except BaseException as error:
        facts.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        facts.ended_ns = time.time_ns()
        document.parent.mkdir(parents=True, exist_ok=True)
        facts.write(document)
