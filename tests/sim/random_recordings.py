"""Archives of random scenarios: recordings, replays, replications and merges of drawn streams.

recordings     on the host of a subscriber or the publisher, of reliable streams without `rejoins`
replays        from a recording's host to a neighbour, as a stream of its own
replications   from a recording's host to the archive of a neighbour
merges         of subscribers to streams with dynamic destinations
events         pauses and kills of an archive
"""

import re
from random import Random
from typing import Any

Document = dict[str, Any]
RESTART_AFTER = "11s"
"""An archive does not start within 10 s after another one was active in its directory."""


def neighbours(host: str, pairs: list[tuple[str, str]]) -> list[str]:
    """Return the hosts that have a link with a host."""
    return [x if y == host else y for x, y in pairs if host in (x, y)]


class Archives:
    """The archives of one scenario. Adds to the streams what archives do with them."""

    def __init__(self, seed: int, traffic: list[Document], pairs: list[tuple[str, str]]) -> None:
        self._random, self._pairs = Random(f"archives {seed}"), pairs
        self._hosts: set[str] = set()
        self._kills = self._happens(15)
        """Whether an archive is killed. Then, none replays, replicates or takes part in a merge."""
        self.replays: list[Document] = []
        for stream in traffic:
            if "rejoins" not in stream and self._happens(75):
                self._record(stream)

    def _pick(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _happens(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _record(self, stream: Document) -> None:
        hosts = [] if "reliable=false" in stream["receive"] else [*stream["to"], *stream["to"]]
        if "control-mode=manual" not in stream["channel"]:
            hosts.append(stream["from"])
        if not hosts:
            return
        host = self._pick(*hosts)
        stream["recorded"] = host
        self._hosts.add(host)
        others = neighbours(host, self._pairs)
        can_merge = "control-mode=dynamic" in stream["channel"] and stream["to"] == [host]
        # With fc=max, a sender does not wait for the archive.
        can_merge &= not self._kills and not re.search("eos=false|fc=max", stream["channel"])
        if can_merge and self._happens(60):
            self._merge(stream)
        elif not self._kills and self._happens(30):
            self._replay(stream, self._pick(*others))
        if not self._kills and self._happens(30):
            stream["replicated"] = self._pick(*others)
            self._hosts.add(stream["replicated"])

    def _merge(self, stream: Document) -> None:
        control = stream["receive"].partition("|control=")[2].partition("|")[0]
        port = 24330 + 10 * (stream["stream"] - 1001) + 2
        live = f"aeron:udp?endpoint=${{self}}:{port}|control={control}"
        stream["merges"] = {"after": self._pick("1B", "2KiB", "12KiB"), "live": live}
        for key in ("consume", "starts_with"):
            stream.pop(key, None)

    def _replay(self, stream: Document, to: str) -> None:
        place = f"aeron:udp?endpoint=${{{to}}}:{24330 + 10 * (stream['stream'] - 1001) + 5}"
        self.replays.append({
            "id": f"{stream['id']}-again", "stream": stream["stream"] + 1000,
            "replays": stream["id"], "from": stream["recorded"], "to": [to],
            "publication": "exclusive", "channel": place,
            "receive": f"{place}|nak-delay={self._pick('10us', '1ms')}",
        })  # fmt: skip

    def archives(self) -> list[Document]:
        return [
            {"host": host, "segment": self._pick("1MiB", "2MiB")} for host in sorted(self._hosts)
        ]

    def events(self) -> list[Document]:
        if not self._hosts or not (self._kills or self._happens(30)):
            return []
        host = {"host": self._pick(*sorted(self._hosts)), "process": "archive"}
        act: Document = {"pause": self._pick("30ms", "500ms", "2s")}
        if self._kills:
            act = {"kill": {"restart_after": RESTART_AFTER}}
        when = self._pick({"after": "0ms"}, {"after": "100ms"}, {"published": "4KiB"})
        return [{"id": "archive", "whom": host, "when": when, "act": act}]
