"""Who is connected to whom, and under which addresses: pure values, no side effects.

Not covered: more than one middlebox, and hosts with several interfaces.
"""
