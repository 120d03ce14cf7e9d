"""Of many things, the few without which it does not happen: delta debugging.

    12 34 56 78     does one part alone do it?  then go on with that
    3456.. 12..     does it happen without one part?  then go on without
    1 2 3 4 ...     else cut into smaller parts

What comes out is least in this sense: without any single one of them it does not happen. If it
happens by any one of several things, one is found in as many questions as it takes to halve.

Source: Zeller, Hildebrandt: "Simplifying and isolating failure-inducing input" (2002), ddmin.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

_Thing = TypeVar("_Thing")


def fewest(
    things: Sequence[_Thing], happens: Callable[[Sequence[_Thing]], bool]
) -> Sequence[_Thing]:
    """The least of `things`, in their order, with which it `happens`, which it does with all.

    The empty choice is asked about first.
    """
    if not things or happens([]):
        return []
    parts = 2
    while len(things) > 1:
        cuts = [len(things) * index // parts for index in range(parts + 1)]
        pieces = [things[begin:end] for begin, end in pairwise(cuts)]
        found = next((each for each in pieces if happens(each)), None)
        if found is not None:
            things, parts = found, 2
            continue
        found = None if parts == 2 else _without_one(pieces, happens)
        if found is not None:
            things, parts = found, max(parts - 1, 2)
        elif parts < len(things):
            parts = min(len(things), 2 * parts)
        else:
            break
    return things


def _without_one(
    pieces: Sequence[Sequence[_Thing]], happens: Callable[[Sequence[_Thing]], bool]
) -> Sequence[_Thing] | None:
    """All but one of the pieces, if it happens with those."""
    for index in range(len(pieces)):
        rest = [each for piece in (*pieces[:index], *pieces[index + 1 :]) for each in piece]
        if happens(rest):
            return rest
    return None
