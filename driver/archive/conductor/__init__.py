"""The archive's conductor: dispatches requests and runs the duty cycle.

archive_conductor    the duty cycle
request_table        maps request classes to the operations that handle them
"""
