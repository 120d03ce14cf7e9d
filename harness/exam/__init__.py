"""The judge's own exam: drivers with one planted defect each, and whether a verdict finds them out.

    mutants/*.yaml --Mutant--> mutated driver --> runs --> killed, or survived
                                   |
                       copy of driver/ with one edit, first on the path of the subject's processes

The driver's source stays clean: a defect is data, a text to find and a text to put in its place.
Refuses to import the driver; it is text here, and a process elsewhere.
"""
