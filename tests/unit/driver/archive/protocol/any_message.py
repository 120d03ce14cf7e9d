"""Messages of every kind with arbitrary values, for property tests."""

from hypothesis import strategies as st

from windtunnel.driver.archive.protocol.codec import BY_TEMPLATE_ID

NUMBERS = {
    "q": st.integers(-(1 << 63), (1 << 63) - 1),
    "i": st.integers(-(1 << 31), (1 << 31) - 1),
}
TEXT = st.text(st.characters(max_codepoint=127), max_size=40)
KINDS = sorted(BY_TEMPLATE_ID.values(), key=lambda kind: kind.TEMPLATE_ID)


def values_of(kind):
    """Return strategies for the fields of a message, by name."""
    values = {
        field.name: st.sampled_from(field.enumeration) if field.enumeration else NUMBERS[field.code]
        for field in kind.LAYOUT.fixed
    }
    for field in kind.LAYOUT.variable:
        values[field.name] = TEXT if field.is_text else st.binary(max_size=40)
    return values


def messages(kind):
    """Return a strategy for messages of one class."""
    return st.builds(kind, **values_of(kind))


ANY_MESSAGE = st.sampled_from(KINDS).flatmap(messages)
