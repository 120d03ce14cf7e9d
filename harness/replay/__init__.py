"""Reduces a failed run to a minimal scenario that still fails, and converts captures to scenarios.

fewest         delta debugging: finds a minimal subset with which a failure still happens
trial          runs a candidate scenario to determine whether it still violates the same check
shrink         the steps from a failed run to a minimal one that still fails
shrink_run     executes these steps, from the run folder to the scenario file
rules          converts the middlebox's decisions to human-readable rules
document       writes a scenario file, based on the run's file
capture_frames reads the frames of a capture file
sightings      extracts the streams' transmissions and feedback from these frames
two_captures   matches the transmissions of a stream between two captures
frame_outcome  infers the outcome of each frame from one capture
observed       converts outcomes to a scenario with the same losses, late and duplicate frames
from_capture   converts captures to the text of a scenario
"""
