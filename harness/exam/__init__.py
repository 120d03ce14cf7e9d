"""The exam of the judge: mutation testing with drivers that have one defect each.

    mutants/*.yaml --Mutant--> mutated driver --> runs --> killed, or survived
                                   |
                       copy of driver/ with the edits, first on PYTHONPATH of the subject's
                       processes

The driver's source is not changed: a mutant is data, a text to find and its replacement. The driver
is not imported here; it is text in this package and a process elsewhere.
"""
