"""Synthetic archive files for the synthetic run: catalog, segment files, document.

    recordings [(start, stop), ...] of the stream, on host b, in files of two terms

Files hold the frames as the publisher sent them; tests change one thing in them.
"""

import shutil

from tests.unit.harness.verdict.synthetic_run import (
    INITIAL_TERM_ID,
    MTU,
    SESSION_ID,
    START_NS,
    STREAM_ID,
    TERM_LENGTH,
    TRAFFIC,
    SyntheticRun,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.storage.catalog_writer import CatalogWriter
from windtunnel.harness.artifact.host.recording import Recorded, RecorderFacts
from windtunnel.harness.artifact.middlebox.frame_class import PAD
from windtunnel.harness.scenario.schema.archive import ArchiveCase

SEGMENT = 2 * TERM_LENGTH


def descriptor(number, start, stop, **changes):
    """Return a catalog descriptor of a recording of the run's stream, with some changes."""
    fields = {
        "control_session_id": 1, "correlation_id": 2, "recording_id": number,
        "start_timestamp": 3, "stop_timestamp": 4, "start_position": start,
        "stop_position": stop, "initial_term_id": INITIAL_TERM_ID,
        "segment_file_length": SEGMENT, "term_buffer_length": TERM_LENGTH,
        "mtu_length": MTU, "session_id": SESSION_ID, "stream_id": STREAM_ID,
        "stripped_channel": "aeron:udp", "original_channel": "aeron:udp",
        "source_identity": "a",
    }  # fmt: skip
    return RecordingDescriptor(**{**fields, **changes})


class SyntheticRecordings:
    """The files of an archive on host b; change them, then call `write`."""

    def __init__(self, run: SyntheticRun) -> None:
        self.run = run
        traffic = run.traffic.model_copy(update={"recorded": "b"})
        archive = ArchiveCase(host="b", segment_bytes=SEGMENT)
        run.case = run.case.model_copy(update={"traffic": (traffic,), "archives": (archive,)})
        self.stretches = [(0, run.log.end_position)]
        self.reported: list[Recorded] | None = None
        "What the archive reported, or None for a correct report."
        self.error: str | None = None
        "The error that the archive's client reported."
        self.changes: dict[str, int] = {}
        "Wrong fields in the catalog's entries."

    @property
    def frame_starts(self) -> list[int]:
        return [int(each) for each in self.run.log.frames["position"]]

    def write(self):
        """Write the run and the archive; return the run's folder."""
        path = self.run.write()
        files = self.run.folder.host("b")
        shutil.rmtree(files.archive, ignore_errors=True)
        files.archive.mkdir(parents=True)
        with CatalogWriter.create(files.archive) as catalog:
            for number, (start, stop) in enumerate(self.stretches):
                catalog.add(descriptor(number, start, stop, **self.changes))
        for number, (start, stop) in enumerate(self.stretches):
            self._write_files(number, start, stop)
        reported = self.reported
        if reported is None:
            reported = [
                Recorded(number, SESSION_ID, start, stop, stop)
                for number, (start, stop) in enumerate(self.stretches)
            ]
        facts = RecorderFacts(STREAM_ID, START_NS, START_NS, self.error, reported)
        facts.write(files.recorder(TRAFFIC).document)
        return path

    def file(self, number, base):
        return self.run.folder.host("b").archive / f"{number}-{base}.rec"

    def _write_files(self, number, start, stop):
        first = start - start % TERM_LENGTH
        for base in range(first, stop, SEGMENT):
            content = bytearray(SEGMENT)
            for index, position in enumerate(self.frame_starts):
                if max(base, start) <= position < min(base + SEGMENT, stop):
                    frame = self.run.frame_bytes(index)
                    is_pad = self.run.log.frames["frame_type"][index] == PAD
                    frame = frame[:32] if is_pad else frame
                    content[position - base : position - base + len(frame)] = frame
            self.file(number, base).write_bytes(content)

    def overwrite(self, number, position, content=b"\xff"):
        """Overwrite bytes at a position of a written recording."""
        start = self.stretches[number][0]
        first = start - start % TERM_LENGTH
        base = first + (position - first) // SEGMENT * SEGMENT
        with self.file(number, base).open("r+b") as file:
            file.seek(position - base)
            file.write(content)
