"""Memory access, intrinsics, system calls, clocks and errors for the driver, client and archive."""
