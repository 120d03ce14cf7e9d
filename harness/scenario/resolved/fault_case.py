"""Resolved fault rules, which the middlebox compiles and the judge reads.

    Fault + stream ids + link --resolve_fault--> FaultCase

Streams are ordinals (indices into the case's sorted stream ids), frame type groups are expanded,
flags are bits, and shares are parts per billion. Fields that do not apply to a rule's action have
their defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from windtunnel.harness.scenario.schema.act import Act, Action, Until
from windtunnel.harness.scenario.schema.fault import COUNT_MAX, Counted, Fault, Reached, What
from windtunnel.harness.scenario.schema.forged import Forged, ForgedType, flag_bits
from windtunnel.harness.scenario.schema.loss_model import ChainKind, MarkovChain, chain_parameters
from windtunnel.harness.scenario.schema.part import Part

LinkName = str
"""Name of a link direction, as in the case."""
PlaceKind = Literal["anywhere", "range", "ranges", "term-start", "term-end", "stream-end"]
Ending = Literal["time", "frames", "advance", "consumed", "repeated"]


class PlaceCase(Part):
    """The stream positions to which a fault rule in a resolved case applies."""

    kind: PlaceKind = "anywhere"
    start: int = 0
    length: int = 1
    every: int = 0
    """Period in bytes, or 0 for no repetition."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Start and length of each range, in ascending order without overlap."""


class CountCase(Part):
    """A selection of frames or transmission attempts by number, such as every third one from the
    second on.
    """

    first: int = 1
    last: int = COUNT_MAX - 1
    every: int = 1


class ReachedCase(Part):
    """A stream position at which a fault rule becomes active or inactive."""

    ordinal: int
    position: int


class WhenCase(Part):
    """The time during which a fault rule is active.

    `for_ns` 0 means no end, `every_ns` 0 no repetition.
    """

    after_ns: int = 0
    for_ns: int = 0
    every_ns: int = 0
    reached: ReachedCase | None = None
    until: ReachedCase | None = None


class ForgedCase(Part):
    """A forged frame in a case. None in `flags` or `length` means the correct value."""

    type: ForgedType
    advance: int = 0
    term_end: int | None = None
    """Offset from the end of the term, in place of `advance`."""
    shift: int = 0
    term: int = 0
    is_same_session: bool = True
    is_same_stream: bool = True
    is_same_receiver: bool = True
    version: int = 0
    flags: int | None = None
    length: int | None = None
    payload_length: int = 0
    holds_frames: bool = False
    """Whether the payload consists of frames. Drivers may mistake these for the datagram's frames.
    """
    window_bytes: int = 0


class FaultCase(Part):
    """A fault rule in a resolved case."""

    id: str
    links: tuple[LinkName, ...]
    frame_types: tuple[str, ...]
    """Names of the frame types."""
    action: Action
    share_ppb: int
    """Requested long-run share of the matching frames, in parts per billion."""
    hold_ns: int = 0
    """Maximum delay of a held frame or a duplicate, or 0 for none."""
    chance: ChainKind = "independent"
    chance_ppb: tuple[int, ...] = ()
    """The Markov chain's parameters in the order of its fields."""
    ordinals: tuple[int, ...] = ()
    """Stream ordinals, or empty for all streams."""
    session: int = 0
    """Number of the session on its stream, counted from 1, or 0 for all sessions."""
    flags_mask: int = 0
    flags_value: int = 0
    place: PlaceCase = PlaceCase()
    order: CountCase = CountCase()
    attempt: CountCase = CountCase()
    when: WhenCase | None = None
    ending: Ending = "time"
    """The event that ends a hold before `hold_ns` has passed."""
    ending_value: int = 0
    """Number of frames or bytes, depending on `ending`."""
    copies: int = 1
    field: str = ""
    bits: int = 1
    cut_to_bytes: int = 0
    forged: tuple[ForgedCase, ...] = ()
    source_port: int = 0
    is_shared: bool = False
    """Whether the rule affects the same frames on all its links."""

    @property
    def share(self) -> float:
        """Return the requested share of the matching frames as a number from 0 to 1."""
        return self.share_ppb / 1e9

    @property
    def chain(self) -> MarkovChain:
        """Return the Markov chain that selects the frames to which a rule applies."""
        parameters = (self.share_ppb,) if self.chance == "independent" else self.chance_ppb
        return MarkovChain(self.chance, parameters)

    @property
    def copies_of_draws(self) -> int:
        """Return how many link directions use the same draws."""
        return len(self.links) if self.is_shared else 1

    @property
    def is_plain(self) -> bool:
        """Return whether the rule has no conditions other than frame types and links."""
        plain = {"ordinals", "session", "flags_mask", "place", "order", "attempt", "when"}
        plain |= {"cut_to_bytes", "field"}  # These skip frames that are too short.
        return all(getattr(self, name) == _DEFAULTS[name] for name in plain)


_DEFAULTS = {name: field.default for name, field in FaultCase.model_fields.items()}


def resolve_fault(
    fault: Fault, ordinals: Mapping[int, int], links: Sequence[LinkName]
) -> FaultCase:
    """Convert a fault rule of a scenario file to the form used in a resolved case. `ordinals` maps
    each stream id to the stream's index in the case.
    """
    what, act = fault.what, fault.act
    chance, parameters = chain_parameters(act.loss_model)
    ending, ending_value, hold_ns = _ending(act)
    return FaultCase(
        id=fault.id,
        links=tuple(links),
        frame_types=what.frame_types,
        action=act.action,
        share_ppb=act.share_ppb,
        hold_ns=hold_ns,
        chance=chance,
        chance_ppb=() if chance == "independent" else parameters,
        ordinals=tuple(sorted(ordinals[each] for each in what.streams or ())),
        session=what.session or 0,
        flags_mask=flag_bits((*what.flags.set, *what.flags.clear)),
        flags_value=flag_bits(what.flags.set),
        place=_place(what),
        order=_count(what.order),
        attempt=_count(fault.attempt),
        when=_when(fault, ordinals),
        ending=ending,
        ending_value=ending_value,
        copies=1 if act.duplicate is None else act.duplicate.copies,
        field="" if act.corrupt is None else act.corrupt.field,
        bits=1 if act.corrupt is None else act.corrupt.bits,
        cut_to_bytes=0 if act.truncate is None else act.truncate.to,
        forged=() if act.inject is None else tuple(_forged(each) for each in act.inject.frames),
        source_port=0 if act.readdress is None else act.readdress.source_port,
        is_shared=fault.where.shared,
    )


def _place(what: What) -> PlaceCase:
    if what.position is None:
        return PlaceCase()
    if what.position.at is not None:
        return PlaceCase(kind=what.position.at)
    if what.position.ranges is not None:
        spans = tuple((each.start, each.length) for each in what.position.ranges)
        return PlaceCase(kind="ranges", ranges=spans)
    return PlaceCase(
        kind="range",
        start=what.position.start or 0,
        length=what.position.length or 1,
        every=what.position.every or 0,
    )


def _count(counted: Counted | None) -> CountCase:
    if counted is None:
        return CountCase()
    return CountCase(first=counted.first, last=counted.last, every=counted.every)


def _when(fault: Fault, ordinals: Mapping[int, int]) -> WhenCase | None:
    when = fault.when
    if when is None:
        return None

    def point(reached: Reached | None) -> ReachedCase | None:
        if reached is None:
            return None
        return ReachedCase(ordinal=ordinals[reached.stream_id], position=reached.position)

    return WhenCase(
        after_ns=when.after_ns,
        for_ns=when.for_ns,
        every_ns=when.every_ns,
        reached=point(when.reached),
        until=point(when.until),
    )


def _ending(act: Act) -> tuple[Ending, int, int]:
    """Return what releases a held frame: the kind of event, the event's value, and the maximum hold
    time.
    """
    if act.displace is not None:
        return "frames", act.displace.by, act.displace.at_most_ns
    held = act.hold or act.duplicate
    if held is None:
        return "time", 0, 0
    if held.until is None:
        return "time", 0, held.delay_ns or 0
    name, value = _event(held.until)
    return name, value, held.at_most_ns or 0


def _event(until: Until) -> tuple[Ending, int]:
    if until.frames is not None:
        return "frames", until.frames
    if until.advance is not None:
        return "advance", until.advance
    return ("consumed", 0) if until.consumed else ("repeated", 0)


def _forged(forged: Forged) -> ForgedCase:
    place = forged.place
    return ForgedCase(
        type=forged.type,
        advance=place.advance or 0,
        term_end=place.term_end,
        shift=place.shift,
        term=place.term,
        is_same_session=forged.session == "same",
        is_same_stream=forged.stream == "same",
        is_same_receiver=forged.receiver == "same",
        version=forged.version,
        flags=None if forged.flags is None else flag_bits(forged.flags),
        length=forged.length,
        payload_length=forged.payload,
        holds_frames=forged.holds == "frames",
        window_bytes=forged.window,
    )
