"""Mutation testing of the judge: one defect at a time is planted into the driver, and the judge
must detect each of them.

    mutants/*.yaml --Mutant--> mutated driver --> runs --> killed, or survived
                                   |
                       copy of driver/ with the edits, first on PYTHONPATH of the subject's
                       processes

The driver's source files are not changed. A mutant is data: a string to find in a file, and its
replacement. This package edits a copy of the sources, and runs the mutated driver only in other
processes.
"""
