"""The archive conductor, which dispatches requests and runs the archive's duty cycle.

archive_conductor    the duty cycle
request_table        maps request classes to the operations that handle them
"""
