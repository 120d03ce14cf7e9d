"""The real C driver in virtual time: its library, its system calls, and its hosts."""
