"""The real C driver on virtual time: its library, its system calls, and its hosts."""
