"""Recordings that a test writes according to the definition of the format."""

import struct
import zlib
from dataclasses import replace

from windtunnel.driver.archive.protocol.responses import RecordingDescriptor

FRAME = struct.Struct("<iBBHiiiiq")
TERM, SEGMENT = 65_536, 131_072
NONZERO = bytes(range(1, 256))
INITIAL_TERM_ID = 2147483647
SESSION_ID, STREAM_ID = -42, 1001
DATA, PAD = 1, 0


def descriptor(recording_id=0, start=0, stop=-1, **changed):
    """Return the descriptor of the recording."""
    made = RecordingDescriptor(
        control_session_id=0, correlation_id=0, recording_id=recording_id, start_timestamp=1_000,
        stop_timestamp=-1, start_position=start, stop_position=stop,
        initial_term_id=INITIAL_TERM_ID, segment_file_length=SEGMENT, term_buffer_length=TERM,
        mtu_length=1408, session_id=SESSION_ID, stream_id=STREAM_ID, stripped_channel="aeron:ipc",
        original_channel="aeron:ipc?alias=own", source_identity="aeron:ipc",
    )  # fmt: skip
    return replace(made, **changed)


def term_id(position):
    wrapped = (INITIAL_TERM_ID + position // TERM) & 0xFFFFFFFF
    return wrapped - (1 << 32) if wrapped >> 31 else wrapped


def frame(position, payload, *, is_pad=False, checksummed=False):
    """Return the bytes of one frame up to the next frame. A padding frame contains zeros after its
    header.
    """
    body = b"" if is_pad else payload.ljust((len(payload) + 31) // 32 * 32, b"\0")
    session = struct.unpack("<i", struct.pack("<I", zlib.crc32(body)))[0]
    head = FRAME.pack(
        32 + len(payload), 0, 0xC0, PAD if is_pad else DATA, position % TERM,
        session if checksummed and not is_pad else SESSION_ID, STREAM_ID, term_id(position), 7,
    )  # fmt: skip
    return (head + body).ljust((32 + len(payload) + 31) // 32 * 32, b"\0")


def payload(index, length):
    first = index % 255
    return (NONZERO * ((first + length) // 255 + 1))[first : first + length]


def stream(lengths, start=0, *, checksummed=False):
    """Return messages of these lengths, starting at `start`, with padding where one does not fit.

    Returns: (position, bytes) of each frame
    """
    frames, position = [], start
    for index, length in enumerate(lengths):
        room = TERM - position % TERM
        if 32 + (length + 31) // 32 * 32 > room:
            frames.append((position, frame(position, bytes(room - 32), is_pad=True)))
            position += room
        frames.append((position, frame(position, payload(index, length), checksummed=checksummed)))
        position += len(frames[-1][1])
    return frames


def write(folder, recording_id, frames, start=0):
    """Write the segment files of a recording at their full length. Returns the end of the data."""
    first = start - start % TERM
    end = frames[-1][0] + len(frames[-1][1]) if frames else start
    whole = bytearray((end - first) // SEGMENT * SEGMENT + SEGMENT)
    for position, content in frames:
        whole[position - first : position - first + len(content)] = content
    for at in range(0, len(whole), SEGMENT):
        (folder / f"{recording_id}-{first + at}.rec").write_bytes(whole[at : at + SEGMENT])
    return end
