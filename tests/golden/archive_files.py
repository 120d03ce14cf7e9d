"""The golden archive: the files of its directory, and the messages of its control session."""

import struct

from tests.golden.reader import GOLDEN, datagrams, load

SET = "archive"
REQUEST_STREAM, RESPONSE_STREAM = 10, 20
FRAME_HEADER = struct.Struct("<iBBHiiii")
DATA, UNFRAGMENTED = 1, 0xC0


def file_names():
    """Return the names of the files in the archive's directory."""
    kept = (path.name.removesuffix(".xz") for path in (GOLDEN / SET).glob("*.xz"))
    return sorted(name for name in kept if name != "control.pcap")


def unpack(folder):
    """Write the archive's files to `folder`."""
    for name in file_names():
        (folder / name).write_bytes(load(SET, name))
    return folder


def data_frames(stream_id):
    """Yield (term id, term offset, bytes with header) of each captured DATA frame of a stream."""
    for datagram in datagrams(SET, "control.pcap"):
        payload, at = datagram.payload, 0
        while at + FRAME_HEADER.size <= len(payload):
            length, _, _, kind, offset, _, stream, term = FRAME_HEADER.unpack_from(payload, at)
            if length <= 0 or kind != DATA:
                break
            if stream == stream_id:
                yield term, offset, payload[at : at + length]
            at += (length + 31) // 32 * 32


def conversation(stream_id):
    """Return the messages of a control stream, each once, in stream order."""
    frames = {(term, offset): frame for term, offset, frame in data_frames(stream_id)}
    first_term = next(iter(frames), (0, 0))[0]
    in_order = sorted(frames, key=lambda place: (place[0] - first_term, place[1]))
    assert all(frames[place][5] & UNFRAGMENTED == UNFRAGMENTED for place in in_order)
    return [frames[place][32:] for place in in_order if len(frames[place]) > 32]
