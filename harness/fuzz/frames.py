"""Valid frames of every type for one stream, and batches of mutated datagrams made from them.

The layouts are those of Aeron 1.53. They are defined again here, because the attack must not share
an error in the driver's layouts.
"""

import struct
from dataclasses import dataclass

import numpy as np

from windtunnel.harness.fuzz import mutation

TERM_LENGTH = 65_536
MTU = 1_408
_DATA = struct.Struct("<iBBHiiiiq")
_SETUP = struct.Struct("<iBBHiiiiiiii")
_STATUS = struct.Struct("<iBBHiiiiiq")
_NAK = struct.Struct("<iBBHiiiii")
_RTTM = struct.Struct("<iBBHiiqqq")
_ERROR = struct.Struct("<iBBHiiqqii")
_RESPONSE = struct.Struct("<iBBHiii")


@dataclass(frozen=True)
class Target:
    """An attacked address, and the ids of the stream to which frames for this address belong."""

    address: str
    port: int
    session_id: int
    stream_id: int
    initial_term_id: int


def frames_of(target: Target, position: int) -> list[bytes]:
    """Return valid frames of every type for a target's stream, at a given position."""
    ids = (target.session_id, target.stream_id)
    term_id = target.initial_term_id + position // TERM_LENGTH
    offset = position % TERM_LENGTH
    payload = bytes(range(96))
    return [
        _DATA.pack(128, 0, 0xC0, mutation.DATA, offset, *ids, term_id, 0) + payload,
        _DATA.pack(0, 0, 0xC0, mutation.DATA, offset, *ids, term_id, 0),
        _DATA.pack(4_096, 0, 0xC0, mutation.PAD, offset, *ids, term_id, 0),
        _SETUP.pack(40, 0, 0, mutation.SETUP, offset, *ids, target.initial_term_id, term_id,
                    TERM_LENGTH, MTU, 0),
        _STATUS.pack(36, 0, 0x80, mutation.SM, *ids, term_id, offset, 32_768, 7),
        _NAK.pack(28, 0, 0, mutation.NAK, *ids, term_id, max(0, offset - 4_096), 1_408),
        _RTTM.pack(40, 0, 0x80, mutation.RTTM, *ids, 12_345, 0, 0),
        _ERROR.pack(44, 0, 0, mutation.ERR, *ids, 7, 0, 13, 4) + b"away",
        _RESPONSE.pack(20, 0, 0, mutation.RSP_SETUP, *ids, 77),
        struct.pack("<iBBHBBHi", 24, 0, 0, mutation.RES, 1, 0x80, 8_050, 0)
        + bytes((127, 0, 0, 1, 1, 0, 97, 0)),
    ]  # fmt: skip


class Forger:
    """Generates batches of mutated datagrams. Equal seeds generate equal datagrams."""

    def __init__(self, seed: int, guarded: np.ndarray, count: int) -> None:
        self.rng = np.array([seed % 2_147_483_562 + 1, seed * 7 % 2_147_483_398 + 1], np.int64)
        self._guarded = guarded
        self._scratch = np.zeros(mutation.ROOM + 4_096, np.uint8)
        self._other = np.zeros(mutation.KEPT, np.uint8)
        self._out = np.zeros(count * mutation.KEPT, np.uint8)
        self._lengths = np.zeros(count, np.int64)

    def batch(self, frames: list[bytes], fixed_length: int = 0) -> list[bytes]:
        """Return a batch of mutated frames. All of them are `fixed_length` bytes long, unless it is
        0.
        """
        goods = np.zeros(len(frames) * mutation.KEPT, np.uint8)
        for index, frame in enumerate(frames):
            start = index * mutation.KEPT
            goods[start : start + len(frame)] = np.frombuffer(frame, np.uint8)
        lengths = np.array([len(frame) for frame in frames], np.int64)
        mutation.spoil_batch(
            self.rng, goods, lengths, self._guarded, self._scratch, self._other, self._out,
            self._lengths, fixed_length,
        )  # fmt: skip
        content = self._out.tobytes()
        return [
            content[index * mutation.KEPT : index * mutation.KEPT + int(length)]
            for index, length in enumerate(self._lengths)
        ]
