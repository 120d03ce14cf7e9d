"""The checks that run without an entry in a scenario's `expect`.

subject_lived       every run
applications_ran    a run with applications
reported_round_trips    a run with limits for the round trips of an application
own_checks          a run with own checks, with one finding for each, which has its name
within_envelope     a simulated run of an unchanged scenario that has an envelope
observed_streams    a run with observed streams, with one finding for each of its own checks, and
                    for each limit of a stream
"""

from collections.abc import Callable, Mapping

from windtunnel.harness.verdict.checks import application, own, reported_round_trips, subject
from windtunnel.harness.verdict.checks.envelope import within_envelope
from windtunnel.harness.verdict.checks.observed import (
    observed_streams,
    reported_delivery,
    stream_limits,
)
from windtunnel.harness.verdict.registry import CHECKS

_OF_OBSERVED = (
    *observed_streams.FROM_CAPTURES,
    *observed_streams.FROM_DRIVERS,
    *observed_streams.OF_CHANNEL,
)

AUTOMATIC: Mapping[str, Callable[..., object]] = {
    subject.NAME: subject.subject_lived,
    application.NAME: application.applications_ran,
    reported_round_trips.NAME: reported_round_trips.reported_round_trips,
    observed_streams.NAME: observed_streams.observed_streams,
    **{name: check for name, _, check in _OF_OBSERVED if name not in CHECKS},
    stream_limits.GOODPUT: stream_limits.observed_goodput,
    stream_limits.SILENCE: stream_limits.observed_silence,
    stream_limits.RECOVERY: stream_limits.observed_recovery,
    stream_limits.BACK_PRESSURE: stream_limits.observed_back_pressure,
    stream_limits.IMAGES: stream_limits.observed_images,
    reported_delivery.DELIVERED: reported_delivery.reported_once_in_order,
    own.NAME: own.own_checks,
    within_envelope.NAME: within_envelope.within_envelope,
}
"""The check functions by name, in the order in which they run. Checks of observed streams that
`expect` can name, too, are left out.
"""
