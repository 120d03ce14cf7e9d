"""The archive's conductor: which request is whose, and the turns of everything that has some.

request_table        from a request's class to the operation that answers it
archive_conductor    the duty cycle
"""
