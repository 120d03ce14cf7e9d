"""What happened once, made to happen again with less: fewer decisions, shorter streams.

    fewest     of many things, the few without which it does not happen
    trial      is the same check still violated, with these decisions and this much traffic?
    shrink     the steps from a run that failed to the least that still does
    rules      decisions as rules that a person can read
    document   a scenario as a file, from the file of the run
    sightings  what a capture shows of each frame, from one or two vantage points
    observed   sightings as a scenario: the same losses, late and duplicate frames

Refuses to know how a run is made and how it is judged.
"""
