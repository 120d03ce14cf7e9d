"""Memory access, intrinsics, system calls and clocks. This package is independent of Aeron."""
