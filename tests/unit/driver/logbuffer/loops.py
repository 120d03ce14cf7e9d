"""A publisher loop in one kernel, for races at the same tail."""

from tests.unit.driver.base.loops import meet
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.logbuffer import appender
from windtunnel.driver.logbuffer import publication_result as result


@kernel
def publish_all(state, log, values, source, lengths, start, parties):
    """Wait for the others, then offer every message. Returns the code that stopped it, or 0."""
    meet(start, 0, parties)
    done, at = 0, 0
    while done < lengths.size:
        sent, outcome = appender.offer_batch(
            state, log, values, 0, source, at, lengths, done, lengths.size - done
        )
        for i in range(done, done + sent):
            at += lengths[i]
        done += sent
        if outcome < 0 and outcome != result.ADMIN_ACTION:
            return outcome
    return 0
