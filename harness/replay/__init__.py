"""Reproduces a failure with less: fewer decisions, shorter streams; and captures as scenarios.

fewest        delta debugging: a minimal subset with which it still happens
trial         whether the same check is still violated, with these decisions and this traffic
shrink        the steps from a failed run to a minimal one that still fails
shrink_run    a shrink from run folder to scenario file
rules         decisions as human-readable rules
document      a scenario file, from the file of the run
sightings     what a capture shows of each frame, from one or two capture points
fate          the outcome of each frame, inferred from one or two captures
observed      outcomes as a scenario: the same losses, late and duplicate frames
from_capture  from captures to the text of a scenario
"""
