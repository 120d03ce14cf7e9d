"""Delta debugging: reduces a set to a minimal subset with which a failure still occurs.

    12 34 56 78     does the failure occur with one part?     then continue with that part
    3456.. 12..     does the failure occur without one part?  then continue without that part
    1 2 3 4 ...     otherwise, divide the set into smaller parts

The result is minimal in this sense: if any single element is removed, the failure does not occur.
If a single element is enough, it is found in a logarithmic number of tests.

Source: Zeller, Hildebrandt: "Simplifying and isolating failure-inducing input" (2002), ddmin.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

_Thing = TypeVar("_Thing")


def fewest(
    things: Sequence[_Thing], happens: Callable[[Sequence[_Thing]], bool]
) -> Sequence[_Thing]:
    """Return a minimal subset of `things`, in the original order, for which `happens` is true.

    `happens` must be true for all `things`. The empty set is tested first.
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
    """Find the first piece that can be left out while the failure still occurs, and return the
    elements of all other pieces. Returns None if there is no such piece.
    """
    for index in range(len(pieces)):
        rest = [each for piece in (*pieces[:index], *pieces[index + 1 :]) for each in piece]
        if happens(rest):
            return rest
    return None
