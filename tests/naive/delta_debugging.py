"""Reference implementation of delta debugging: try all combinations, the shortest first."""

from itertools import combinations


def shortest(things, happens):
    """Return the shortest combinations for which `happens` is true, in order of `things`."""
    for count in range(len(things) + 1):
        found = [list(each) for each in combinations(things, count) if happens(list(each))]
        if found:
            return found
    raise AssertionError("`happens` is false for the complete list")
