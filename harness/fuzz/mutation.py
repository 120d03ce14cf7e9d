"""Kernels that mutate datagrams and commands, and detect datagrams that a stream would accept.

    valid datagram --1 to 4 of: flip, replace, truncate, extend, set a field, change it slightly,
                               splice with another, append another, change the type--> datagram

The validity check is implemented again here, with separate offsets, so it cannot share an error in
the driver's validation. All randomness comes from `rng`, int64[2].
"""

from windtunnel.driver.base.atomics import (
    copy,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    put_i32,
    put_i64,
    put_u8,
)
from windtunnel.driver.kernels.jit import kernel

ROOM = 65_507
"""Length of the longest UDP datagram."""
KEPT = 2048
"""Maximum length of a datagram in a batch."""
ATTEMPTS = 8
"""Maximum number of attempts to find a mutation that no guarded stream accepts."""
TERM_LENGTH = 65_536

PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP = 0, 1, 2, 3, 4, 5, 6, 7, 11
KINDS = (PAD, DATA, NAK, SM, ERR, SETUP, RTTM, RES, RSP_SETUP)
LENGTHS = (32, 32, 28, 36, 48, 40, 40, 30, 20)
EDGES = (
    0, 1, -1, 2, 7, 8, 20, 28, 31, 32, 33, 36, 40, 44, 1407, 1408, 1409, 4096, 32_767, 32_768,
    65_503, 65_504, 65_505, 65_535, 65_536, 65_537, 131_072, 1 << 24, 1 << 29, 1 << 30,
    (1 << 30) + 1, (1 << 31) - 1, (1 << 31) - 32, -(1 << 31), -(1 << 31) + 1, -32, -65_536,
)  # fmt: skip
WIDE_EDGES = (0, 1, -1, 7, 1 << 31, 1 << 32, (1 << 62) + 5, (1 << 63) - 1, -(1 << 62))
DELTAS = (1, -1, 4, 8, 32, -32, 64, 1408, -1408, 16_384, 32_768, 65_536, -65_536, 1 << 20)


@kernel
def draw(rng, count):
    """Draw an integer in the range [0, `count`)."""
    rng[0] = rng[0] * 40_014 % 2_147_483_563
    rng[1] = rng[1] * 40_692 % 2_147_483_399
    return ((rng[0] - rng[1]) % 2_147_483_562) % count


@kernel
def _any_i32(rng):
    return (draw(rng, 65_536) << 16 | draw(rng, 65_536)) - (1 << 31)


@kernel
def _step(rng, buf, length, other, other_length):
    """Apply one random mutation to the datagram in `buf[:length]`. Returns the new length."""
    choice = draw(rng, 12)
    head = max(1, min(length, 48))
    if choice <= 1:
        for _ in range(1 + draw(rng, 4)):
            at = draw(rng, head)
            put_u8(buf, at, get_u8(buf, at) ^ (1 << draw(rng, 8)))
    elif choice == 2:
        at = draw(rng, head if draw(rng, 2) == 0 else max(1, length))
        put_u8(buf, at, draw(rng, 256))
    elif choice == 3:
        return draw(rng, length + 1)
    elif choice == 4:
        more = 1 + draw(rng, 64)
        if draw(rng, 200) == 0:
            more = draw(rng, ROOM)
        elif draw(rng, 4) == 0:
            more = 32 * (1 + draw(rng, 40))
        more = min(more, ROOM - length)
        fill = draw(rng, 256)
        for at in range(length, length + more):
            put_u8(buf, at, fill)
        return length + more
    elif choice <= 6 and length >= 4:
        put_i32(buf, 4 * draw(rng, min(length, 48) // 4), EDGES[draw(rng, len(EDGES))])
    elif choice == 7 and length >= 16:
        put_i64(buf, 8 * draw(rng, min(length, 48) // 8), WIDE_EDGES[draw(rng, len(WIDE_EDGES))])
    elif choice == 8 and length >= 4:
        at = 4 * draw(rng, min(length, 48) // 4)
        changed = get_i32(buf, at) + DELTAS[draw(rng, len(DELTAS))]
        put_i32(buf, at, max(-(1 << 31), min(changed, (1 << 31) - 1)))
    elif choice == 9:
        cut = min(length, other_length) // 8 * 8
        cut = 8 * draw(rng, cut // 8 + 1)
        copy(buf, cut, other, cut, other_length - cut)
        return other_length
    elif choice == 10 and length + other_length <= ROOM:
        start = (length + 31) // 32 * 32
        copy(buf, start, other, 0, other_length)
        if other_length >= 12 and draw(rng, 2) == 0 and length >= 12:
            put_i32(buf, start + 8, min((1 << 31) - 1, get_i32(buf, 8) + start))
        return start + other_length
    elif choice == 11 and length >= 8:
        index = draw(rng, len(KINDS))
        put_u8(buf, 6, KINDS[index])
        put_u8(buf, 7, 0)
        if draw(rng, 2) == 0:
            length = max(length, LENGTHS[index])
            put_i32(buf, 0, LENGTHS[index])
        if draw(rng, 8) == 0:
            put_u8(buf, 6, draw(rng, 256))
    return length


@kernel
def _ids_at(kind):
    """Return the offset of the session id in a frame of this type. The stream id follows it."""
    return 12 if kind in (DATA, PAD, SETUP) else 8


@kernel
def _made_anew(rng, buf, length):
    """Overwrite the datagram in `buf` with a random frame for the same stream. Returns the new
    length.
    """
    old = get_u16(buf, 6)
    ids = _ids_at(old)
    session_id, stream_id = get_i32(buf, ids), get_i32(buf, ids + 4)
    if draw(rng, 4) == 0:
        session_id = _any_i32(rng)
    index = draw(rng, len(KINDS))
    kind, whole = KINDS[index], LENGTHS[index]
    for at in range(8, whole):
        put_u8(buf, at, draw(rng, 256) if draw(rng, 4) == 0 else 0)
    put_i32(buf, 0, whole)
    put_u8(buf, 4, 0)
    put_u8(buf, 5, draw(rng, 256) if draw(rng, 2) == 0 else 0)
    put_u8(buf, 6, kind)
    put_u8(buf, 7, 0)
    ids = _ids_at(kind)
    if whole >= ids + 8:
        put_i32(buf, ids, session_id)
        put_i32(buf, ids + 4, stream_id)
    if kind == SETUP:
        put_i32(buf, 28, TERM_LENGTH)
        put_i32(buf, 32, 1408)
        put_i32(buf, 8, 32 * draw(rng, 2048))
    if kind == NAK:
        put_i32(buf, 20, 32 * draw(rng, 2048))
        put_i32(buf, 24, 32 * draw(rng, 2048))
    if kind == ERR:
        put_i32(buf, 36, draw(rng, 9))
    return max(length, whole) if draw(rng, 8) == 0 else whole


@kernel
def spoil(rng, buf, length, other, other_length):
    """Mutate the valid datagram in `buf[:length]`. Some mutations insert parts of another datagram.

    Shapes:  buf uint8[ROOM + 4096]; other uint8[KEPT]
    Returns: the new length; the bytes after it are undefined
    """
    if length >= 24 and draw(rng, 3) == 0:
        length = _made_anew(rng, buf, length)
        if draw(rng, 4) == 0:
            return length
    for _ in range(1 + draw(rng, 4)):
        length = _step(rng, buf, length, other, other_length)
    return min(length, ROOM)


@kernel
def _reaches(buf, length):
    """Return whether the frames in a DATA datagram are contiguous within one term."""
    start = get_i32(buf, 8)
    if start < 0 or start >= TERM_LENGTH or start % 32 != 0:
        return False
    if length == 32 and get_i32(buf, 0) == 0:
        return True
    at = 0
    kind = DATA
    while at + 32 <= length:
        declared = get_i32(buf, at)
        kind = get_u16(buf, at + 6)
        if declared < 1 or kind > DATA or get_i32(buf, at + 8) != start + at:
            return False
        at += (declared + 31) // 32 * 32
        if start + at > TERM_LENGTH:
            return False
    return at == length or (kind == PAD and at > length)


@kernel
def passes_for_good(buf, length, guarded):
    """Return whether one of the `guarded` streams could accept a datagram as genuine.

    Shapes:  guarded int64[n, 2], session ids and stream ids
    """
    if length < 32 or get_u8(buf, 4) != 0:
        return False
    kind = get_u16(buf, 6)
    if kind in (DATA, PAD):
        if length % 32 != 0 or get_i32(buf, 0) < 0 or not _reaches(buf, length):
            return False
    elif kind == SETUP:
        if length < 40 or get_i32(buf, 0) > length:
            return False
    elif kind != SM or length < 36 or get_i32(buf, 0) > length:
        return False
    ids = _ids_at(kind)
    session_id, stream_id = get_i32(buf, ids), get_i32(buf, ids + 4)
    for index in range(guarded.shape[0]):
        if guarded[index, 0] == session_id and guarded[index, 1] == stream_id:
            return True
    return False


@kernel
def spoil_batch(rng, goods, lengths, guarded, scratch, other, out, out_lengths, fixed_length):
    """Fill a batch with mutated datagrams, none of which a guarded stream would accept.

    Shapes:  goods uint8[n * KEPT]; lengths int64[n]; scratch uint8[ROOM + 4096]; other uint8[KEPT];
             out uint8[m * KEPT]; out_lengths int64[m]
    Units:   if `fixed_length` is not 0, all datagrams are cut or padded to this length
    """
    for index in range(out_lengths.size):
        length = ROOM
        for _ in range(ATTEMPTS):
            slot, second = draw(rng, lengths.size), draw(rng, lengths.size)
            copy(scratch, 0, goods, slot * KEPT, lengths[slot])
            copy(other, 0, goods, second * KEPT, lengths[second])
            length = lengths[slot]
            if draw(rng, 16) > 0:
                length = min(spoil(rng, scratch, length, other, lengths[second]), KEPT)
            if fixed_length > 0:
                for at in range(length, fixed_length):
                    put_u8(scratch, at, 0)
                length = fixed_length
            if not passes_for_good(scratch, length, guarded):
                break
            length = ROOM
        if length == ROOM:
            # Set an unknown version, because no stream accepts such a frame.
            length = fixed_length if fixed_length > 0 else 20
            put_u8(scratch, 4, 255)
        copy(out, index * KEPT, scratch, 0, length)
        out_lengths[index] = length


@kernel
def spoil_command(rng, content, length, room):
    """Mutate the bytes of a client command. Returns the new length, which is at most `room`."""
    for _ in range(draw(rng, 4)):
        choice = draw(rng, 8)
        if choice == 0 and length > 0:
            at = draw(rng, length)
            put_u8(content, at, get_u8(content, at) ^ (1 << draw(rng, 8)))
        elif choice == 1 and length > 0:
            put_u8(content, draw(rng, length), draw(rng, 256))
        elif choice == 2:
            length = draw(rng, length + 1)
        elif choice == 3:
            more = min(1 + draw(rng, 40 if draw(rng, 16) else 4000), room - length)
            fill = draw(rng, 256)
            for at in range(length, length + more):
                put_u8(content, at, fill)
            length += more
        elif choice <= 5 and length >= 4:
            put_i32(content, 4 * draw(rng, length // 4), EDGES[draw(rng, len(EDGES))])
        elif choice == 6 and length >= 8:
            put_i64(content, 8 * draw(rng, length // 8), WIDE_EDGES[draw(rng, len(WIDE_EDGES))])
        elif choice == 7 and length >= 8:
            at = 8 * draw(rng, length // 8)
            changed = get_i64(content, at)
            delta = DELTAS[draw(rng, 4)]
            put_i64(content, at, changed + delta if abs(changed) < 1 << 62 else changed)
    return length


@kernel
def scribble(rng, target, begin, end, count):
    """Overwrite `count` random words between two offsets, mostly with boundary values."""
    for _ in range(count):
        value = WIDE_EDGES[draw(rng, len(WIDE_EDGES))]
        if draw(rng, 2) == 0:
            value = EDGES[draw(rng, len(EDGES))]
        if draw(rng, 4) == 0:
            value = draw(rng, 1 << 30)
        choice = draw(rng, 4)
        at = begin + draw(rng, end - begin - 8) // 8 * 8
        if choice == 0:
            put_i64(target, at, value)
        elif choice == 1:
            put_i32(target, at + 4 * draw(rng, 2), EDGES[draw(rng, len(EDGES))])
        elif choice == 2:
            put_u8(target, at + draw(rng, 8), draw(rng, 256))
        else:
            # Change the old value slightly: nearly correct values pass the most checks.
            old = get_i32(target, at)
            put_i32(target, at, max(-(1 << 31), min(old + DELTAS[draw(rng, 14)], (1 << 31) - 1)))
