"""The kernel's `netem` as an order and as an answer: words for `tc`, and what `tc` reads back.

    WeatherCase --render--> ["delay", "5ms", ...] --tc, elsewhere--> JSON --readback--> Applied
                                                      differences(asked, Applied)

Pure: no process is started here. What the kernel does not tell cannot be compared: the shape of a
distribution is one such thing, and calibration measures it instead.
"""
