"""Settings of a run's drivers, as their hosts have them in the case."""

from windtunnel.harness.scenario.resolved.case import Case
from windtunnel.harness.scenario.schema.channel import parse_duration_ns


def duration_setting_ns(case: Case, host: str, name: str, default_ns: int) -> int | None:
    """Return a duration that is a setting of a host's driver, or the default. None if it cannot be
    read.
    """
    text = case.drivers.get(host, {}).get(name)
    try:
        return default_ns if text is None else parse_duration_ns(name, text)
    except ValueError:
        return None
