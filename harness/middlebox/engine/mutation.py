"""Emits mutated frames: corrupted, truncated, forged, or sent from another port.

    original   | header | payload ............ |
    corrupt    | hea?er | payload ............ |    a bit flipped
    truncate   | header | pay |
    inject     | header | payload ............ |  | a forged frame |
    readdress  the same, with another source port

The sender of the outbox updates lengths and checksums for the new bytes, so the endpoint receives
the mutation. A mutated frame is classified again and counted in its new class.
"""

from typing import Any

from windtunnel.driver.kernels.jit import kernel
from windtunnel.harness.artifact.middlebox.decision import CORRUPT, READDRESS, TRUNCATE
from windtunnel.harness.artifact.middlebox.frame_class import DATA, PAD
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.dissect.frames.bytes_at import i32_le
from windtunnel.harness.dissect.frames.frames import class_of_first, class_of_next
from windtunnel.harness.middlebox.engine import outbox as out
from windtunnel.harness.middlebox.engine.frame_match import FrameMatch, wire_length
from windtunnel.harness.middlebox.engine.prf import draws, subject
from windtunnel.harness.middlebox.engine.state import (
    DATAGRAMS_OUT,
    FRAMES_FORGED,
    FRAMES_MUTATED_FROM,
    FRAMES_MUTATED_INTO,
    FRAMES_OUT,
    SEED,
    Engine,
)
from windtunnel.harness.middlebox.engine.templates import fill_in, set_values
from windtunnel.harness.middlebox.rule_compiler import PAYLOAD
from windtunnel.harness.middlebox.rules import class_index, draw_link

_HEADER_BITS = 8 * layout.DATA_HEADER_LENGTH


@kernel
def send_mutated(
    engine: Engine,
    buf: Any,
    envelope: int,
    start: int,
    link: int,
    now_ns: int,
    frame: FrameMatch,
    detail: int,
) -> None:
    """Send a frame, mutated by the matching rule, in a separate datagram.

    `detail` is the first bit to flip, or the number of bytes to keep.
    """
    rule = engine.rules[frame.rule]
    action = rule["action"]
    length = detail if action == TRUNCATE else frame.length
    out.put(engine.outbox, link, now_ns, buf, envelope, start - envelope, buf, frame.at, length)
    datagram = engine.outbox.datagrams[engine.outbox.counts[out.COUNT] - 1]
    engine.datagrams[link, DATAGRAMS_OUT] += 1
    if action == READDRESS:
        datagram["source_port"] = rule["source_port"]
        engine.frames[link, frame.kind, FRAMES_OUT] += 1
        return
    datagram["is_changed"] = 1
    at = datagram["at"] + datagram["envelope_length"]
    if action == CORRUPT:
        for bit in range(detail, detail + rule["bits"]):
            if bit < 8 * length:
                engine.outbox.buf[at + bit // 8] ^= 1 << bit % 8
    engine.frames[link, frame.kind, FRAMES_MUTATED_FROM] += 1
    count_frames(engine, engine.outbox.buf, at, at + length, link, FRAMES_MUTATED_INTO)


@kernel
def mutation_detail(engine: Engine, buf: Any, link: int, frame: FrameMatch) -> int:
    """Return the first bit to flip if the matching rule corrupts frames, the number of bytes to
    keep if it truncates frames, or 0 for other rules.

    The bit comes from the low end of a second draw, so it is independent of the decision. A replay
    uses the recorded bit.
    """
    rule = engine.rules[frame.rule]
    if frame.replayed_index >= 0:
        detail = int(engine.replayed[frame.replayed_index]["detail"])
        return min(detail, frame.length) if rule["action"] == TRUNCATE else detail
    if rule["action"] == TRUNCATE:
        return int(rule["cut_to"])
    if rule["action"] != CORRUPT:
        return 0
    first = engine.spans[frame.rule, frame.kind, 0]
    bits = engine.spans[frame.rule, frame.kind, 1]
    if bits == PAYLOAD:
        bits = 8 * i32_le(buf, frame.at) - _HEADER_BITS
    choices = max(1, bits - rule["bits"] + 1)
    what = subject(draw_link(rule["shared_link"], link), frame.kind, 0, 1)
    place = frame.place if frame.attempt else engine.orders[link, frame.kind].sum()
    _, drawn = draws(engine.state[SEED], frame.rule, what, place, frame.attempt)
    return int(first + drawn % choices)


@kernel
def send_forged(
    engine: Engine, buf: Any, envelope: int, start: int, link: int, frame: FrameMatch
) -> int:
    """Send the forged frames that the rule adds after a frame. Returns the number of datagrams."""
    rule = engine.rules[frame.rule]
    for index in range(rule["first_forged"], rule["first_forged"] + rule["forged"]):
        template = engine.templates[index]
        length = template["length"]
        out.put(
            engine.outbox,
            link,
            0,
            buf,
            envelope,
            start - envelope,
            engine.template_buf,
            template["at"],
            length,
        )
        datagram = engine.outbox.datagrams[engine.outbox.counts[out.COUNT] - 1]
        datagram["is_changed"] = 1
        at = datagram["at"] + datagram["envelope_length"]
        initial_term_id, term_length = 0, 0
        if frame.session >= 0:
            initial_term_id = engine.sessions[frame.session]["initial_term_id"]
            term_length = engine.sessions[frame.session]["term_length"]
        set_values(
            engine.values, template, engine.row[0], frame.place, initial_term_id, term_length
        )
        fill_in(engine.outbox.buf, at, template, engine.patches, engine.values)
        engine.datagrams[link, DATAGRAMS_OUT] += 1
        count_frames(engine, engine.outbox.buf, at, at + length, link, FRAMES_FORGED)
    return int(rule["forged"])


@kernel
def count_frames(engine: Engine, buf: Any, at: int, end: int, link: int, column: int) -> None:
    """Count the frames of an outgoing datagram, both in the count that `column` selects and in the
    count of sent frames.
    """
    code = class_of_first(buf, at, end - at)
    walks = code in (DATA, PAD)
    while True:
        if walks:
            code = class_of_next(buf, at, end - at)
        engine.frames[link, class_index(code), column] += 1
        engine.frames[link, class_index(code), FRAMES_OUT] += 1
        if code != DATA:
            return
        at += wire_length(buf, at, end, code)
        if at >= end:
            return
