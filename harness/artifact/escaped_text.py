"""Texts from elsewhere, such as names of files, in one line that shows each character."""


def escaped(text: str) -> str:
    """Return a text with its unprintable characters escaped, such as line ends, after which a
    comment would end, and bytes that are not UTF-8.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
