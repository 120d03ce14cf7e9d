"""Units for default values and limits: bytes and nanoseconds."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000
