"""Converts the fault rules of a scenario to the tables that compiled kernels use.

    case.faults  -->  RULES, streams that each applies to, bits that each corrupts
                 -->  TEMPLATES --> PATCHES, and the bytes of forged frames

This runs once, before the first datagram arrives.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from windtunnel.harness.artifact.middlebox import decision, frame_class
from windtunnel.harness.artifact.run.plan import plan
from windtunnel.harness.dissect.driver_files.expected_log import expected_log
from windtunnel.harness.dissect.frames import layout
from windtunnel.harness.middlebox import rules as table
from windtunnel.harness.middlebox.engine.prf import DRAW_BITS
from windtunnel.harness.middlebox.engine.templates import PATCH, SOURCES, TEMPLATE
from windtunnel.harness.middlebox.rules import CLASSES, NOWHERE, RULE
from windtunnel.harness.scenario.resolved.case import LINK_NAMES, Case, TrafficCase
from windtunnel.harness.scenario.resolved.fault_case import FaultCase, WhenCase
from windtunnel.harness.scenario.schema.units import BILLION

SWAP_PATIENCE_NS = 1_000_000
"""Time for which a swapped frame waits for a neighbour before it is sent alone."""

PAYLOAD = -1
"""Used in place of a number of bits. It means everything after the frame's header."""

_ACTIONS = {name: code for code, name in decision.ACTIONS.items()}
_PLACES = {
    "anywhere": table.ANYWHERE,
    "range": table.RANGE,
    "term-start": table.TERM_START,
    "term-end": table.TERM_END,
    "stream-end": table.STREAM_END,
    "ranges": table.RANGES,
}
_CHANCES = {
    "independent": table.INDEPENDENT,
    "two states": table.TWO_STATES,
    "four states": table.FOUR_STATES,
}
_ENDINGS = {
    "time": table.BY_TIME,
    "frames": table.BY_FRAMES,
    "advance": table.BY_ADVANCE,
    "consumed": table.BY_CONSUMPTION,
    "repeated": table.BY_REPETITION,
}
_FIELDS: dict[str, tuple[str, ...]] = {
    "frame-length": ("frame_length",),
    "version": ("version",),
    "flags": ("flags",),
    "type": ("type",),
    "term-offset": ("term_offset", "consumption_term_offset"),
    "session-id": ("session_id",),
    "stream-id": ("stream_id",),
    "term-id": ("term_id", "active_term_id", "consumption_term_id"),
    "reserved": ("reserved_value",),
}
"""Maps each field name in scenarios to its names in `layout`."""

assert decision.LINKS == LINK_NAMES


def compile_rules(
    case: Case,
) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.int64]]:
    """Convert the fault rules to RULE records. Also returns the streams to which each rule applies,
    and the bits that it can corrupt.
    """
    rules = np.zeros(len(case.faults), dtype=RULE)
    selected = np.zeros((len(rules), len(case.traffic) + 1), dtype=np.uint8)
    spans = np.zeros((len(rules), len(CLASSES), 2), dtype=np.int64)
    forged = ranges = 0
    for index, (rule, fault) in enumerate(zip(rules, case.faults, strict=True)):
        _fill_selection(rule, fault, case.link_names)
        _fill_time(rule, fault.when)
        _fill_chance(rule, fault)
        _fill_action(rule, fault, forged)
        forged += len(fault.forged)
        rule["first_range"], rule["ranges"] = ranges, len(fault.place.ranges)
        ranges += len(fault.place.ranges)
        selected[index, list(fault.ordinals) or slice(None)] = 1
        if fault.field:
            spans[index] = [_span(code, fault.field) for code in CLASSES]
    return rules, selected, spans


def compile_ranges(case: Case) -> NDArray[np.int64]:
    """Return the start and end of each position range of all fault rules, in the order of the
    rules.
    """
    found = [
        (start, start + length) for fault in case.faults for start, length in fault.place.ranges
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _fill_selection(rule: Any, fault: FaultCase, link_names: tuple[str, ...]) -> None:
    codes = [link_names.index(name) for name in fault.links]
    rule["links"] = sum(1 << code for code in codes)
    rule["shared_link"] = min(codes) if fault.is_shared else table.NOT_SHARED
    classes = {frame_class.CODES[name] for name in fault.frame_types}
    rule["classes"] = sum(1 << CLASSES.index(code) for code in classes)
    rule["session"] = fault.session
    rule["flags_mask"] = fault.flags_mask
    rule["flags_value"] = fault.flags_value
    rule["place"] = _PLACES[fault.place.kind]
    rule["place_start"] = fault.place.start
    rule["place_length"] = fault.place.length
    rule["place_every"] = fault.place.every
    for name in ("order", "attempt"):
        counted = getattr(fault, name)
        rule[f"{name}_first"] = counted.first
        rule[f"{name}_last"] = counted.last
        rule[f"{name}_every"] = counted.every
    if fault.action == "truncate":
        rule["longer_than"] = fault.cut_to_bytes
    elif fault.field == "payload":
        rule["longer_than"] = layout.DATA_HEADER_LENGTH


def _fill_time(rule: Any, when: WhenCase | None) -> None:
    rule["reached_ordinal"] = rule["until_ordinal"] = NOWHERE
    if when is None:
        return
    rule["is_timed"] = 1
    rule["after_ns"] = when.after_ns
    rule["for_ns"] = when.for_ns
    rule["every_ns"] = when.every_ns
    if when.reached is not None:
        rule["reached_ordinal"] = when.reached.ordinal
        rule["reached_position"] = when.reached.position
    if when.until is not None:
        rule["until_ordinal"] = when.until.ordinal
        rule["until_position"] = when.until.position


def _fill_chance(rule: Any, fault: FaultCase) -> None:
    rule["chance"] = _CHANCES[fault.chance]
    rule["threshold"] = _threshold(fault.share_ppb)
    for index, part in enumerate(fault.chance_ppb):
        rule[f"step_{index}"] = _threshold(part)


def _threshold(share_ppb: int) -> int:
    return (share_ppb << DRAW_BITS) // BILLION


def _fill_action(rule: Any, fault: FaultCase, first_forged: int) -> None:
    rule["action"] = _ACTIONS[fault.action]
    rule["delay_ns"] = SWAP_PATIENCE_NS if fault.action == "swap" else fault.hold_ns
    rule["ending"] = _ENDINGS[fault.ending]
    rule["ending_value"] = fault.ending_value
    if fault.action == "swap":
        rule["ending"], rule["ending_value"] = table.BY_FRAMES, 1
    rule["copies"] = fault.copies
    rule["bits"] = fault.bits
    rule["cut_to"] = fault.cut_to_bytes
    rule["first_forged"] = first_forged
    rule["forged"] = len(fault.forged)
    rule["source_port"] = fault.source_port


def _span(code: int, field: str) -> tuple[int, int]:
    """Return the first bit and the bit count of a named field in frames of a class, or (0, 0) if
    the frames have no such field.
    """
    frame = layout.BY_TYPE_CODE.get(frame_class.DATA if code == frame_class.HEARTBEAT else code)
    if frame is None:
        return 0, 0
    if field == "payload":
        return (8 * frame.length, PAYLOAD) if code == frame_class.DATA else (0, 0)
    for known in (*layout.HEADER, *frame.fields):
        if known.name in _FIELDS[field]:
            return 8 * known.offset, 8 * known.width
    return 0, 0


def compile_templates(
    case: Case,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.uint8]]:
    """Build the forged frames of all fault rules. Returns their templates, the fields to patch, and
    the bytes.
    """
    forged_cases = [forged for fault in case.faults for forged in fault.forged]
    templates = np.zeros(len(forged_cases), dtype=TEMPLATE)
    patches: list[tuple[int, int, int]] = []
    raw = b""
    if forged_cases:
        # Importing scapy takes a second, which a case without forged frames can avoid.
        from windtunnel.harness.dissect.frames.forged_frames import build_frame

        mtu = max(traffic.mtu for traffic in case.traffic)
        for template, forged in zip(templates, forged_cases, strict=True):
            authored = build_frame(forged, mtu)
            template["at"], template["length"] = len(raw), len(authored.raw)
            template["advance"] = forged.advance
            template["from_term_end"] = 0 if forged.term_end is None else 1
            template["term_end"] = forged.term_end or 0
            template["shift"], template["term"] = forged.shift, forged.term
            template["is_same_session"] = forged.is_same_session
            template["is_same_stream"] = forged.is_same_stream
            template["is_same_receiver"] = forged.is_same_receiver
            template["first_patch"] = len(patches)
            template["patches"] = len(authored.patches)
            patches += [
                (each.offset, each.width, SOURCES.index(each.source)) for each in authored.patches
            ]
            raw += authored.raw
    filled = np.array(patches, dtype=PATCH) if patches else np.zeros(0, dtype=PATCH)
    return templates, filled, np.frombuffer(raw, dtype=np.uint8).copy()


def stream_ends(case: Case) -> NDArray[np.int64]:
    """Return the position at which each stream is expected to end, by the index of the stream.

    The positions are computed only if a rule needs them, because this takes the whole message plan.
    """
    ends = np.full(len(case.traffic), -1, dtype=np.int64)
    if any(fault.place.kind == "stream-end" for fault in case.faults):
        for traffic in case.traffic:
            ends[traffic.ordinal] = _end_position(case, traffic)
    return ends


def _end_position(case: Case, traffic: TrafficCase) -> int:
    messages = plan(
        case.seed,
        traffic.id,
        traffic.total_bytes,
        longest=traffic.longest_bytes,
        shortest=traffic.shortest_bytes,
    )
    log = expected_log(messages.lengths, traffic.mtu, traffic.term_length, traffic.initial_position)
    return log.end_position
