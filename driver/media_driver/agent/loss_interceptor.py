"""Drops received datagrams before they are parsed, like the C driver's loss interceptors.

    loss             each frame whose type is in the mask, with a fixed probability
    fixed-loss       frames that cover a range of one term, once per stream
    multi-gap-loss   frames that touch a gap at each multiple of a radix in a term, once per stream

These rules drop exactly the same frames as the C driver, since tests of other programs depend on
that. The random numbers are from the same generator (`erand48`). Without interceptors, the cost is
one length check. Source: the C driver's interceptors, Aeron 1.53.
"""

from typing import NamedTuple

import numpy as np

from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media import stream_map
from windtunnel.driver.media.stream_map import make_stream_map
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FIXED_LOSS,
    LOSS,
    MULTI_GAP_LOSS,
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)
from windtunnel.driver.wire import data, frame_type, header

RANDOM = 1
FIXED = 2
MULTI_GAP = 3

TRACKED_STREAMS_MAX = 1024
"""Maximum number of streams from which rules with fixed losses drop frames. Frames of additional
streams are not dropped."""

LOSS_RULE = np.dtype(
    (
        np.record,
        [
            ("kind", "i8"),
            ("random", "i8"),  # 48 bits
            ("rate", "f8"),
            ("type_mask", "i8"),
            ("term_id", "i8"),
            ("limit", "i8"),  # term offset at which the loss ends
            ("radix_bits", "i8"),
            ("gap_length", "i8"),
        ],
    )
)

_MASK_48 = (1 << 48) - 1
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_SCALE = 1.0 / (1 << 48)


class Losses(NamedTuple):
    """The rules by which an agent drops received frames."""

    rules: np.ndarray  # LOSS_RULE[n], in the order of their names in the setting
    offsets: np.ndarray  # STREAM_ENTRY[...], (rule, stream, session) -> reached offset


NO_LOSSES = Losses(np.zeros(0, dtype=LOSS_RULE).view(np.recarray), make_stream_map(1))


def make_losses(
    names: tuple[str, ...],
    random_loss: RandomLoss,
    fixed_loss: FixedLoss,
    multi_gap_loss: MultiGapLoss,
) -> Losses:
    """Create the loss rules of one agent from the driver's settings."""
    if not names:
        return NO_LOSSES
    rules = np.zeros(len(names), dtype=LOSS_RULE).view(np.recarray)
    for rule, name in zip(rules, names, strict=True):
        if name == LOSS:
            _fill_random(rule, random_loss)
        elif name == FIXED_LOSS:
            rule.kind, rule.term_id = FIXED, fixed_loss.term_id
            rule.limit = fixed_loss.term_offset + fixed_loss.length
        else:
            assert name == MULTI_GAP_LOSS, f"no loss is named {name}"
            _fill_multi_gap(rule, multi_gap_loss)
    return Losses(rules, make_stream_map(TRACKED_STREAMS_MAX))


def _fill_random(rule: np.record, settings: RandomLoss) -> None:
    rule.kind = RANDOM
    rule.rate, rule.type_mask = settings.rate, settings.message_type_mask
    # erand48 uses three 16-bit words, the least significant word first. The C driver passes the
    # words of the seed in the opposite order.
    low, middle, high = (settings.seed >> shift & 0xFFFF for shift in (0, 16, 32))
    rule.random = low << 32 | middle << 16 | high


def _fill_multi_gap(rule: np.record, settings: MultiGapLoss) -> None:
    rule.kind, rule.term_id = MULTI_GAP, settings.term_id
    rule.gap_length = settings.gap_length
    rule.radix_bits = max(0, (settings.gap_radix - 1).bit_length())
    rule.limit = settings.total_gaps * settings.gap_radix + settings.gap_length


@kernel
def is_lost(losses, buf, at, length):
    """Return whether the loss rules drop a received datagram, which has not been validated yet."""
    if length < header.LENGTH:
        return False
    kind = header.frame_type(buf, at)
    for index in range(losses.rules.size):
        rule = losses.rules[index]
        if rule.kind == RANDOM:
            is_hit = _is_lost_by_chance(rule, kind)
        else:
            is_data = kind == frame_type.DATA and length >= data.HEADER_LENGTH
            is_hit = is_data and _is_in_gap(losses, index, buf, at, length)
        if is_hit:
            return True
    return False


@kernel
def _is_lost_by_chance(rule, kind):
    is_in_mask = kind < 32 and (rule.type_mask >> kind) & 1 != 0
    if rule.rate <= 0.0 or not is_in_mask:
        return False
    rule.random = (int(rule.random) * _MULTIPLIER + _INCREMENT) & _MASK_48
    return rule.random * _SCALE <= rule.rate


@kernel
def _is_in_gap(losses, index, buf, at, length):
    rule = losses.rules[index]
    stream_id, session_id = data.stream_id(buf, at), data.session_id(buf, at)
    begin = data.term_offset(buf, at)
    if data.term_id(buf, at) != rule.term_id or begin < 0:
        return False
    if rule.kind == MULTI_GAP and begin > rule.limit:
        return False
    reached = stream_map.find(losses.offsets, index, stream_id, session_id)
    if reached == stream_map.ABSENT:
        reached = begin
        if not stream_map.insert(losses.offsets, index, stream_id, session_id, reached):
            return False
    if rule.kind == FIXED:
        is_hit = reached < rule.limit and begin <= reached < begin + length
    else:
        is_hit = reached <= begin and _touches_gap(rule, begin, length)
    if is_hit:
        stream_map.insert(losses.offsets, index, stream_id, session_id, begin + length)
    return is_hit


@kernel
def _touches_gap(rule, begin, length):
    """Return whether a range of a term overlaps a gap of a multi-gap-loss rule. A gap begins at
    each multiple of the rule's radix, except at 0.
    """
    before = begin >> rule.radix_bits << rule.radix_bits
    if before > 0 and (begin == before or begin < before + rule.gap_length):
        return True
    behind = before + (1 << rule.radix_bits)
    return begin + length > behind and begin < behind + rule.gap_length
