"""What all tests share: property tests that have time enough to compile a kernel first."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "windtunnel",
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("windtunnel")
