"""Describes a fault rule: the frames to which it applies, the time when it is active, and its
action.
"""

from collections.abc import Iterable, Iterator

from windtunnel.harness.artifact.noun_form import noun_for
from windtunnel.harness.scenario.resolved.fault_case import CountCase, FaultCase, WhenCase
from windtunnel.harness.scenario.schema.fault import ALL_TYPES, COUNT_MAX
from windtunnel.harness.scenario.schema.units import format_bytes, format_duration, format_share

_VERBS = {
    "drop": "dropped",
    "duplicate": "duplicated",
    "hold": "delayed",
    "swap": "swapped",
    "displace": "reordered",
    "corrupt": "corrupted",
    "truncate": "truncated",
    "inject": "followed by forged frames",
    "readdress": "sent from another port",
}
_PLACES = {
    "term-start": "the first frame of each term",
    "term-end": "the last frame of each term",
    "stream-end": "the last frame of the stream",
}


def fault_line(fault: FaultCase, links: Iterable[str]) -> str:
    """Return the first line of a rule's description: share, frame types, links and action.

    `links` are the rule's link directions with the names of their hosts.
    """
    types = "every frame" if fault.frame_types == ALL_TYPES else ", ".join(fault.frame_types)
    return (
        f"{format_share(fault.share_ppb)} of {types} "
        f"on {', '.join(links)} {_VERBS[fault.action]}{_details(fault)}"
    )


def choice_lines(fault: FaultCase, stream_ids: list[int]) -> Iterator[str]:
    """Yield one line for each condition of a rule other than frame type and link.

    Shapes: stream_ids in ascending order, so an index into it is an ordinal
    """
    if fault.ordinals:
        yield f"of stream {', '.join(str(stream_ids[each]) for each in fault.ordinals)}"
    if fault.is_shared:
        yield "before packets are copied to these links: the same frames on all of them"
    if fault.session:
        yield f"of session {fault.session} of the stream"
    if fault.flags_mask:
        yield f"with flags {fault.flags_value:#04x} under mask {fault.flags_mask:#04x}"
    if fault.place.kind == "range":
        period = format_bytes(fault.place.every)
        repetition = f", repeated every {period}" if fault.place.every else ""
        length, start = format_bytes(fault.place.length), format_bytes(fault.place.start)
        yield f"{length} at position {start}{repetition}"
    elif fault.place.kind == "ranges":
        total_bytes = sum(length for _, length in fault.place.ranges)
        count = len(fault.place.ranges)
        yield f"in {count} {noun_for(count, 'range')}, {format_bytes(total_bytes)} in total"
    elif fault.place.kind != "anywhere":
        yield _PLACES[fault.place.kind]
    for name in ("attempt", "order"):
        if getattr(fault, name) != CountCase():
            yield f"{name} {_counted(getattr(fault, name))}"
    if fault.chance != "independent":
        yield f"in bursts of {fault.chain.burst_length:.1f} on average ({fault.chance})"
    if fault.when is not None:
        yield _time(fault.when, stream_ids)


def _details(fault: FaultCase) -> str:
    if fault.action == "corrupt":
        return f": {fault.bits} bit{'s' if fault.bits > 1 else ''} of {fault.field}"
    if fault.action == "truncate":
        return f" to {format_bytes(fault.cut_to_bytes)}"
    if fault.action == "inject":
        return f": {', '.join(each.type for each in fault.forged)}"
    if fault.action == "readdress":
        return f", {fault.source_port}"
    if fault.action == "duplicate":
        return _copies(fault)
    if fault.ending == "time":
        return f" for {format_duration(fault.hold_ns)}" if fault.hold_ns else ""
    if fault.action == "displace":
        end = f"by {fault.ending_value} frames"
    else:
        end = f"until {_event(fault)}"
    return f" {end}, at most {format_duration(fault.hold_ns)}"


def _copies(fault: FaultCase) -> str:
    text = f" {fault.copies} times" if fault.copies > 1 else ""
    if fault.hold_ns == 0:
        return text
    delay = f"after {format_duration(fault.hold_ns)}"
    if fault.ending == "time":
        return f"{text} {delay}"
    return f"{text} when {_event(fault)}, or {delay}"


def _event(fault: FaultCase) -> str:
    """Describe the event that ends the delay of held frames."""
    if fault.ending == "frames":
        return f"{fault.ending_value} others have passed"
    if fault.ending == "advance":
        return f"the stream has advanced by {format_bytes(fault.ending_value)}"
    if fault.ending == "consumed":
        return "the receiver has acknowledged them"
    return "their position has been retransmitted"


def _counted(counted: CountCase) -> str:
    if counted.first == counted.last:
        return str(counted.first)
    text = f"{counted.first} and later"
    if counted.last < COUNT_MAX - 1:
        text = f"{counted.first} to {counted.last}"
    return text if counted.every == 1 else f"{text}, in steps of {counted.every}"


def _time(when: WhenCase, stream_ids: list[int]) -> str:
    start, event = "at", "the first DATA frame"
    if when.reached is not None:
        position = format_bytes(when.reached.position)
        start, event = "when", f"stream {stream_ids[when.reached.ordinal]} reaches {position}"
    if when.after_ns:
        start = f"{format_duration(when.after_ns)} after"
    text = f"starting {start} {event}"
    if when.for_ns:
        text += f", for {format_duration(when.for_ns)}"
    if when.every_ns:
        text += f", repeated every {format_duration(when.every_ns)}"
    if when.until is not None:
        position = format_bytes(when.until.position)
        text += f", until stream {stream_ids[when.until.ordinal]} reaches {position}"
    return text
