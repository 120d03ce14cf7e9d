"""A lab that stays up while a person works in it: a process that keeps it, and requests to it."""
