"""Options of a capture analysis, and the frame columns that it reads, for both engines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windtunnel.reports.analysis.links.join import JOIN_COLUMNS
from windtunnel.reports.analysis.reading.totals import TOTALS_MAX
from windtunnel.reports.analysis.streams.repair import GAPS_MAX, GAPS_OF_STREAM_MIN
from windtunnel.reports.analysis.streams.stream_limit import (
    DESTINATIONS_MAX,
    STREAMS_MAX,
    Limits,
)
from windtunnel.reports.analysis.streams.stream_set import FRAME_COLUMNS
from windtunnel.reports.analysis.streams.stream_walk import WalkSettings

OUTCOME_COLUMNS = tuple(dict.fromkeys((*FRAME_COLUMNS, *JOIN_COLUMNS)))
"""Columns of the frame table that the second reading of the captures needs."""


@dataclass(frozen=True)
class AnalysisOptions:
    """Options that request results in addition to the tables that every analysis returns, and
    limits.
    """

    checksums: bool = False
    "Whether to compute the CRC-32 of each payload and message. This reads every payload byte."
    messages: bool = False
    "Whether to return a row per message; implies `checksums`."
    outcomes_dir: Path | None = None
    "Folder for the table `outcomes`, written as Parquet because it may be larger than memory."

    max_streams: int = STREAMS_MAX
    "Maximum number of streams, and of their destinations and receivers in total."
    max_destinations: int = DESTINATIONS_MAX
    "Maximum number of destinations of a stream, and of its receivers."

    max_gaps: int = GAPS_MAX
    "Maximum number of gaps of all streams."

    max_totals: int = TOTALS_MAX
    "Maximum number of combinations of stream, vantage point, addresses, frame type and term."

    @property
    def limits(self) -> Limits:
        """The limits on what is analysed."""
        return Limits(self.max_streams, self.max_destinations, self.max_totals)

    @property
    def read_settings(self) -> dict[str, Any]:
        """The keyword arguments for `ReadSettings` that these options require."""
        return {
            "keeps_hash": False,
            "keeps_crc32": self.checksums or self.messages,
            "totals_max": self.max_totals,
        }

    def walk_settings(self, stream_count: int) -> WalkSettings:
        """Return the settings of each stream's `StreamWalk`. The streams share the maximum number
        of gaps equally, so that a result does not depend on the order in which they are read.
        """
        least = min(self.max_gaps, GAPS_OF_STREAM_MIN)
        share = max(least, self.max_gaps // max(1, stream_count))
        return WalkSettings(keeps_messages=self.messages, max_gaps=share)
