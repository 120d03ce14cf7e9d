"""The error of a lab."""


class LabError(Exception):
    """Raised if a lab cannot be built, a request cannot be fulfilled, or a wait failed."""
