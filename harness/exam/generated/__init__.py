"""Generated mutants: edits by operators over the syntax trees of the driver's modules, sampled by a
seed.
"""
