"""The recovery benchmark: streams on paths with losses, with ours and the real C driver.

    figures.py         the paths, the drivers of both sides, and the figures with their limits
    runs.py            the runs: a sweep of NAK delays of the C driver, then rounds of seeds
    saved_readings.py  readings in a file, so that an interruption loses none

A path is a scenario below scenarios/recovery.
"""
