"""Selects counters by pattern, as in Aeron's AeronStat.

A pattern matches anywhere in the number or text. A filter applies only to counters that have the
attribute, and all other counters pass. Unlike in AeronStat, the newer stream counters (back
pressure, NAKs, receivers) are filtered like the other counters of their stream.
"""

import re
from dataclasses import dataclass

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key


@dataclass(frozen=True)
class CounterFilter:
    """Patterns that a counter must match. A pattern that is None matches every counter."""

    type: re.Pattern[str] | None = None
    identity: re.Pattern[str] | None = None
    session: re.Pattern[str] | None = None
    stream: re.Pattern[str] | None = None
    channel: re.Pattern[str] | None = None

    def passes(self, counter: CounterFacts) -> bool:
        """Return whether a counter matches every pattern that applies to its type."""
        if not _found(self.type, counter.type_id):
            return False
        if counter.type_id == counter_key.SYSTEM:
            return _found(self.identity, counter_key.identity(counter))
        if counter.type_id in counter_key.STREAM_TYPES:
            session, stream = counter_key.session_and_stream(counter)
            return (
                _found(self.identity, counter_key.identity(counter))
                and _found(self.session, session)
                and _found(self.stream, stream)
                and _found(self.channel, counter_key.channel(counter))
            )
        if counter.type_id in counter_key.ENDPOINT_TYPES:
            return _found(self.channel, counter_key.channel(counter))
        return True


def _found(pattern: re.Pattern[str] | None, what: int | str) -> bool:
    return pattern is None or pattern.search(str(what)) is not None
