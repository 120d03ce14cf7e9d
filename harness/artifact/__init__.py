"""What a run leaves behind: every path, record and document in a run folder.

This room is the treaty between those who make a run and those who judge or draw it. It knows
layouts only: not who writes them, nor what they mean for a verdict.
"""
