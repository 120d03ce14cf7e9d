"""Memory access, intrinsics, system calls and clocks, independent of Aeron."""
