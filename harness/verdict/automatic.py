"""The checks that run without an entry in a scenario's `expect`.

subject_lived       every run
applications_ran    a run with applications
observed_streams    a run with observed streams, with one finding for each of its own checks
"""

from collections.abc import Callable, Mapping

from windtunnel.harness.verdict.checks import application, subject
from windtunnel.harness.verdict.checks.observed import observed_streams, reported_delivery
from windtunnel.harness.verdict.registry import CHECKS

_OF_OBSERVED = (*observed_streams.FROM_CAPTURES, *observed_streams.FROM_DRIVERS)

AUTOMATIC: Mapping[str, Callable[..., object]] = {
    subject.NAME: subject.subject_lived,
    application.NAME: application.applications_ran,
    observed_streams.NAME: observed_streams.observed_streams,
    **{check.__name__: check for check, _ in _OF_OBSERVED if check.__name__ not in CHECKS},
    reported_delivery.DELIVERED: reported_delivery.reported_once_in_order,
}
"""The check functions by name, in the order in which they run. Checks of observed streams that
`expect` can name, too, are left out.
"""
