"""Memory, machine code, system calls and time: the ground floor, which knows nothing of Aeron."""
