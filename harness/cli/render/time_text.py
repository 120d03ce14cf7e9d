"""Epoch milliseconds as a person reads them, in local time with its offset, as Aeron's tools do."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(epoch_ms: int) -> str:
    """A time such as `2026-01-31 23:41:08.599+0000`; what no calendar holds stays a number."""
    try:
        local = (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{epoch_ms} ms"
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03}{local:%z}"
