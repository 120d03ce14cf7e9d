"""Calibration of impairments: compares their measured effects with the requested values.

    plan        impairments, one at a time, and how much traffic each needs
    probe       the traffic: numbered DATA frames from host a to host b
    rounds      a lab, one relay per round, captures on both hosts
    measure     two captures to rates, bursts, quantiles and distances, with 99.9 % intervals
    floors      which of them must be within limits, and whether they are
    throughput  the highest rate at which the relay forwards datagrams without loss

Neither a driver nor the judge takes part: a calibration measures the impairments themselves.
"""
