"""The files after a kill, after a stop, and of another archive. Cases D1 to D9."""

import os
import shutil
import subprocess
import time

import pytest

from tests.archive.archives import JAR, JAVA, SEGMENT, activity_ms, make_as_old, until, why_no_java
from tests.archive.conversation import ControlSession
from tests.archive.streams import FRAME, IPC, Recorded, positioned, replayed
from tests.golden.archive_files import unpack
from windtunnel.driver.archive.protocol.codes import ControlResponseCode
from windtunnel.driver.archive.protocol.requests import (
    AttachSegmentsRequest,
    ListRecordingRequest,
    ListRecordingsRequest,
    PurgeRecordingRequest,
    StopPositionRequest,
)
from windtunnel.driver.archive.protocol.responses import RecordingDescriptor
from windtunnel.driver.archive.tool.program import main as our_tool

PAGE = 4_096
LIVENESS_MS = 10_000
CATALOG_HEADER, ENTRY_HEADER = 32, 32


def mark_file(archive):
    return archive.directory / "archive-mark.dat"


def kill_archive(archive):
    """Kill an archive and delete its driver's files, so that only the archive's files remain."""
    archive.kill()
    shutil.rmtree(archive.folder / "aeron")
    return archive


def restarted(archive):
    """Restart a killed archive as if its mark file were old enough, and connect."""
    make_as_old(mark_file(archive), LIVENESS_MS + 1_000)
    return ControlSession(archive.start())


def described(session, recording_id):
    return session.request(ListRecordingRequest, recording_id=recording_id)


def listed(session):
    """Return all descriptors of an archive."""
    request = session.send(ListRecordingsRequest, from_recording_id=0, record_count=1_000)
    until(
        lambda: (
            session.received(request)
            and getattr(session.received(request)[-1], "code", None)
            == ControlResponseCode.RECORDING_UNKNOWN
        ),
        "the end of the list",
    )
    return session.received(request, RecordingDescriptor)


def test_d1_and_d2_killed_while_recording(own_archive):
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive)).send(130)
    began_ms = time.time() * 1_000
    kill_archive(archive)
    # The age leaves time for the next archive to start before the mark file is too old.
    make_as_old(mark_file(archive), 2_000 - LIVENESS_MS)
    before = activity_ms(mark_file(archive))
    archive.launch()
    assert archive.exit_code() != 0
    assert activity_ms(mark_file(archive)) == before > 0
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    session = restarted(archive)
    found = described(session, recorded.recording_id)
    reached = SEGMENT + (130 - 124) * FRAME
    assert (found.start_position, found.stop_position) == (0, reached)
    assert began_ms - 1_000 <= found.stop_timestamp <= time.time() * 1_000
    assert replayed(session, recorded.recording_id) == recorded.sent


def test_d2_frames_behind_a_gap_are_discarded(own_archive):
    """The recording ends before the first frame that was never written."""
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive)).send(20)
    kill_archive(archive)
    with (archive.directory / f"{recorded.recording_id}-0.rec").open("r+b") as file:
        file.seek(11 * FRAME)
        file.write(bytes(FRAME))
    session = restarted(archive)
    assert session.ok(StopPositionRequest, recording_id=recorded.recording_id) == 11 * FRAME
    assert replayed(session, recorded.recording_id) == recorded.sent[:11]


@pytest.mark.full
def test_d3_killed_before_any_data(own_archive):
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive), positioned(4_096))
    kill_archive(archive)
    found = described(restarted(archive), recorded.recording_id)
    assert (found.start_position, found.stop_position) == (4_096, 4_096)


@pytest.mark.full
def test_d4_a_last_frame_that_may_be_torn(own_archive):
    """Its header announces data in a page that contains only zeros."""
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive)).send(10)
    kill_archive(archive)
    file = archive.directory / f"{recorded.recording_id}-0.rec"
    assert PAGE % FRAME > 0
    with file.open("r+b") as opened:
        opened.truncate(PAGE)
        opened.truncate(SEGMENT)
    before = (archive.directory / "archive.catalog").read_bytes()
    make_as_old(mark_file(archive), LIVENESS_MS + 1_000)
    archive.launch()
    assert archive.exit_code() != 0
    assert (archive.directory / "archive.catalog").read_bytes() == before
    assert activity_ms(mark_file(archive)) == -1


@pytest.mark.full
def test_d5_after_a_clean_stop_it_starts_at_once(own_archive):
    archive = own_archive().start()
    recorded = Recorded(ControlSession(archive)).send(10)
    archive.stop()
    assert activity_ms(mark_file(archive)) == -1
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    session = ControlSession(archive.start())
    assert session.ok(StopPositionRequest, recording_id=recorded.recording_id) == 10 * FRAME
    assert replayed(session, recorded.recording_id) == recorded.sent


def verified_by_java(directory):
    """Return the exit code of Java's tool, which asks no questions without a terminal."""
    command = (
        *JAVA, "-cp", os.path.abspath(JAR), "io.aeron.archive.ArchiveTool", str(directory),
        "verify", "-a",
    )  # fmt: skip
    done = subprocess.run(command, input=b"", capture_output=True, timeout=100)
    assert b"ERR" not in done.stdout, done.stdout
    return done.returncode


def verified_by_us(directory):
    """Return the exit code of this project's tool."""
    return our_tool(["verify", "-a", "--read-only", "--dir", str(directory)])


TOOLS = [
    pytest.param(
        verified_by_java, id="javas-tool",
        marks=pytest.mark.skipif(bool(why_no_java()), reason=why_no_java()),
    ),
    pytest.param(verified_by_us, id="our-tool"),
]  # fmt: skip


@pytest.mark.parametrize("verified", TOOLS)
def test_d6_each_tool_verifies_the_files_of_each_archive(own_archive, verified):
    archive = own_archive().start()
    session = ControlSession(archive)
    for start in (0, 4_096):
        Recorded(session, positioned(start)).send(150).stop()
    Recorded(session)
    session.close()
    archive.stop()
    assert verified(archive.directory) == 0


def golden(count, longest):
    """Return the messages that the golden archive recorded, according to its README."""
    lengths = [1 + (index * 7_919) % longest for index in range(count)]
    return [
        bytes((index + at) & 0xFF for at in range(length)) for index, length in enumerate(lengths)
    ]


def test_d7_the_golden_archive_is_listed_and_replayed(own_archive):
    archive = own_archive()
    archive.directory.mkdir(parents=True)
    unpack(archive.directory)
    session = ControlSession(archive.start())
    facts = [
        (
            each.recording_id,
            each.start_position,
            each.stop_position,
            each.stream_id,
            each.session_id,
        )
        for each in listed(session)
    ]
    assert facts == [
        (0, 0, 268_448, 2_001, -1_166_092_544),
        (1, 0, 479_104, 2_002, -1_166_092_543),
        (2, 262_144, 855_776, 2_003, -1_166_092_542),
    ]
    assert replayed(session, 0) == golden(250, 2_000)
    assert replayed(session, 1) == golden(300, 3_000)
    all_messages = golden(400, 4_000)
    late = replayed(session, 2)
    assert 0 < len(late) < 400
    assert late == all_messages[-len(late) :]
    assert session.ok(AttachSegmentsRequest, recording_id=2) == 2
    assert replayed(session, 2) == all_messages
    assert Recorded(session).recording_id == 3


@pytest.mark.full
def test_d8_a_full_catalog_grows(own_archive):
    capacity = 1_024
    archive = own_archive({"aeron.archive.catalog.capacity": capacity}).start()
    session = ControlSession(archive)
    made = [Recorded(session).send(1) for _ in range(20)]
    for each in made:
        each.stop()
    assert [each.recording_id for each in made] == list(range(20))
    size = capacity
    while size < CATALOG_HEADER + 20 * 192:
        size += size >> 1
    assert (archive.directory / "archive.catalog").stat().st_size == size
    before = listed(session)
    assert [each.recording_id for each in before] == list(range(20))
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    after = listed(ControlSession(archive.start()))
    assert [each.recording_id for each in after] == list(range(20))
    assert [each.stop_position for each in after] == 20 * [FRAME]


def cut_to_size(catalog):
    """Truncate a catalog after its last entry, as compaction does."""
    content, at = catalog.read_bytes(), CATALOG_HEADER
    while length := int.from_bytes(content[at : at + 4], "little"):
        at += ENTRY_HEADER + length
    os.truncate(catalog, at)


@pytest.mark.full
def test_d9_a_catalog_without_free_space(own_archive):
    archive = own_archive().start()
    session = ControlSession(archive)
    made = [Recorded(session).send(2) for _ in range(3)]
    for each in made:
        each.stop()
    session.ok(PurgeRecordingRequest, recording_id=2)
    archive.stop()
    shutil.rmtree(archive.folder / "aeron", ignore_errors=True)
    cut_to_size(archive.directory / "archive.catalog")
    session = ControlSession(archive.start())
    assert [each.recording_id for each in listed(session)] == [0, 1]
    assert replayed(session, 1) == made[1].sent
    following = Recorded(session, IPC).send(1)
    assert following.recording_id == 3
    following.stop()
