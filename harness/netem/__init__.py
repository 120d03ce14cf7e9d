"""Converts impairments to arguments of `tc netem`, and parses the settings that `tc` reports.

    ImpairmentCase --render--> ["delay", "5ms", ...] --tc, by the lab--> JSON --readback--> Applied
                                                         differences(requested, Applied)

This package starts no process. Settings that the kernel does not report, such as the shape of a
distribution, cannot be compared; calibration measures them instead.
"""
