"""Measures for how long a publication refused a publisher's offers, by the result of the offer.

offer    refused    refused    refused        accepted
         |-- back pressure --|-- not connected --|
"""

from collections.abc import Callable


class RefusedTime:
    """The time from each refused offer to the next offer, summed by result code."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._total_ns: dict[int, int] = {}
        self._code = 0
        """Result of the last offer if it was refused, or 0."""
        self._since_ns = 0

    def note(self, code: int) -> None:
        """Account for the result of an offer: a position, or a negative code."""
        if code > 0 and not self._code:
            return
        now_ns = self._clock_ns()
        if self._code:
            total_ns = self._total_ns.get(self._code, 0)
            self._total_ns[self._code] = total_ns + now_ns - self._since_ns
        self._code, self._since_ns = min(code, 0), now_ns

    def of(self, code: int) -> int:
        """Return for how many nanoseconds offers were refused with a code."""
        return self._total_ns.get(code, 0)
