"""Reference implementation of the check that decimation keeps all peaks."""


def peaks_lost(values: list[int], kept: list[int], bucket_size: int) -> bool:
    """Return whether any bucket of the original lost its minimum or maximum."""
    chosen = set(kept)
    for begin in range(0, len(values), bucket_size):
        inside = range(begin, min(begin + bucket_size, len(values)))
        kept_values = [values[index] for index in inside if index in chosen]
        whole = [values[index] for index in inside]
        if not kept_values or min(kept_values) != min(whole) or max(kept_values) != max(whole):
            return True
    return False


def nth_occurrence(values: list[int]) -> list[int]:
    """Return for each value the number of its occurrences so far, itself included."""
    seen: dict[int, int] = {}
    counts = []
    for value in values:
        seen[value] = seen.get(value, 0) + 1
        counts.append(seen[value])
    return counts
