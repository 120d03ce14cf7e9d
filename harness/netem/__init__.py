"""Conversion of impairments to arguments of `tc netem`, and of the output of `tc` back.

    ImpairmentCase --render--> ["delay", "5ms", ...] --tc, by the lab--> JSON --readback--> Applied
                                                         differences(requested, Applied)

No process is started here. Settings that the kernel does not report, such as the shape of a
distribution, cannot be compared; calibration measures them instead.
"""
