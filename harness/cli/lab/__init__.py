"""`windtunnel lab`: a lab that stays up while a person works in it."""
