"""Which counters were asked for: patterns as Aeron's AeronStat takes them.

A pattern need only be found somewhere in the number or the text. A filter speaks about the counters
that have such a thing; the others pass it. Where AeronStat lets newer counters of a stream pass
(back pressure, NAKs, receivers) they are filtered like the rest of their stream.
"""

import re
from dataclasses import dataclass

from windtunnel.harness.artifact.host.counter_sample import CounterFacts
from windtunnel.harness.dissect.driver_files import counter_key


@dataclass(frozen=True)
class CounterFilter:
    """Patterns that a counter must match; None matches all."""

    type: re.Pattern[str] | None = None
    identity: re.Pattern[str] | None = None
    session: re.Pattern[str] | None = None
    stream: re.Pattern[str] | None = None
    channel: re.Pattern[str] | None = None

    def passes(self, counter: CounterFacts) -> bool:
        """Tell whether a counter was asked for."""
        if not _found(self.type, counter.type_id):
            return False
        if counter.type_id == counter_key.SYSTEM:
            return _found(self.identity, counter_key.identity(counter))
        if counter.type_id in counter_key.OF_A_STREAM:
            session, stream = counter_key.session_and_stream(counter)
            return (
                _found(self.identity, counter_key.identity(counter))
                and _found(self.session, session)
                and _found(self.stream, stream)
                and _found(self.channel, counter_key.channel(counter))
            )
        if counter.type_id in counter_key.OF_AN_ENDPOINT:
            return _found(self.channel, counter_key.channel(counter))
        return True


def _found(pattern: re.Pattern[str] | None, what: int | str) -> bool:
    return pattern is None or pattern.search(str(what)) is not None
