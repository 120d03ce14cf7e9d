"""Is the weather as bad as it says? Known traffic through a backend, requested beside delivered.

    plan       impairments, one at a time, and how much traffic each needs
    probe      the traffic: numbered DATA frames from host a to host b
    rounds     a lab, a relay a round, captures on both hosts
    measure    two captures to rates, bursts, quantiles and distances, with 99.9 % intervals
    floors     which of them must hold, and do they

No driver and no judge takes part: a calibration measures the instrument.
"""
