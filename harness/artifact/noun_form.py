"""The singular or plural of a noun, as a count requires: 1 stream, 2 streams, 0 streams."""


def noun_for(count: int, singular: str, plural: str | None = None) -> str:
    """Return the form of a noun that follows a count. `plural` is the singular with an s by
    default.
    """
    if count == 1:
        return singular
    return f"{singular}s" if plural is None else plural


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a count and its noun, such as `1 frame` or `1,000 frames`."""
    return f"{count:,} {noun_for(count, singular, plural)}"
