"""Formats epoch milliseconds as local time with the UTC offset, as in Aeron's tools."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(epoch_ms: int) -> str:
    """Return a time such as `2026-01-31 23:41:08.599+0000`, or the number if it is out of range."""
    try:
        local = (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ms} ms"
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03}{local:%z}"
