"""The slow, obvious twin of delta debugging: every choice of things, the shortest first."""

from itertools import combinations


def shortest(things, happens):
    """The shortest choices with which it happens, in the order of the things."""
    for count in range(len(things) + 1):
        found = [list(each) for each in combinations(things, count) if happens(list(each))]
        if found:
            return found
    raise AssertionError("it does not happen with all of them")
