"""Scenarios with archives, drawn from a seed.

kind      what uses the archive: a recording of one or several streams, where they arrive or where
          they are published, with a replay, a merge or a replica
stream    terms, segments, positions, MTU, pace, NAK delay and window
link      lost, swapped and duplicated frames; packets that are lost, delayed or duplicated
event     the archive or the driver beside it is paused, or the archive is killed
"""

from random import Random

KIB = 1 << 10
SEGMENTS = (64, 128, 256, 1024)
KINDS = ("record", "record", "local", "replay", "merge", "replicate")
CONTROL = "control=${a}:24324"
REPLAY_RULE = "lose-replay"
RULES = (
    ("lose-data", "a->b", "{type: DATA}", "drop", 70),
    ("lose-back", "both", "{type: [SM, NAK]}", "drop", 40),
    ("double", "a->b", "{type: DATA}", "duplicate", 30),
    ("swap", "a->b", "{type: DATA}", "swap", 30),
    (REPLAY_RULE, "b->a", "{type: DATA, stream: 2001}", "drop", 70),
)
"""Rules of faults: id, link, frames, action, and in how many percent of the scenarios."""
LIMIT = "{unrecorded_at_most: 1GiB}"


class Draw:
    """The parts of one scenario."""

    def __init__(self, seed: int) -> None:
        self.seed, self._random = seed, Random(f"archives {seed}")
        self.kind = self.pick(*KINDS)
        self.archive = "a" if self.kind == "local" else "b"
        self.kills = self.kind == "record" and self.happens(25)
        """Whether the archive is killed."""
        self.segment_kib = self.pick(*(SEGMENTS[1:] if self.kills else SEGMENTS))
        self.term_kib = self._term()

    def pick(self, *values):
        return self._random.choice(values)

    def happens(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _term(self) -> int:
        if self.kills:
            return self.pick(*(each for each in SEGMENTS if 128 <= each <= self.segment_kib))
        return self.pick(*(each for each in SEGMENTS if each <= self.segment_kib))

    def stream(self, index: int) -> str:
        """Return the traffic of one stream."""
        initial = self.pick(-3, 0, 7, (1 << 31) - 2, -(1 << 31))
        offset = self.pick(0, 0, 32, 4096, 64 * KIB - 64)
        terms = f"term-length={self.term_kib}k|mtu={self.pick(512, 1408, 8192)}"
        terms += f"|init-term-id={initial}|term-id={initial}|term-offset={offset}"
        nak = self.pick("", "|nak-delay=10us", "|nak-delay=1ms")
        channel = f"aeron:udp?endpoint=${{b}}:{24330 + index}|{terms}"
        receive = f"aeron:udp?endpoint=${{b}}:{24330 + index}{nak}{self.pick('', '|rcv-wnd=32k')}"
        longest, kib = self.pick("64B", "1KiB", "max"), self.pick(64, 256, 1024)
        pace = self.pick("", ", pace: {rate: 2MiB/s}", ", pace: {rate: 500KiB/s}")
        lines = [f"recorded: {self.archive}"]
        if self.kills:
            # The stream must still go on when the next archive starts. With a window of half a term
            # it would end meanwhile, see archive/killed-while-recording.
            kib, pace, longest = 4096, ", pace: {rate: 500KiB/s}", self.pick("4KiB", "max")
            receive = f"aeron:udp?endpoint=${{b}}:{24330 + index}{nak}|rcv-wnd=32k"
        if self.kind == "replay":
            longest = "4KiB"  # Longer padding is replayed as several frames.
        if self.kind == "merge":
            channel = f"aeron:udp?control-mode=dynamic|{CONTROL}|fc=min|{terms}"
            receive = f"aeron:udp?endpoint=${{self}}:24325|{CONTROL}|control-mode=dynamic{nak}"
            kib, pace = 2048, ", pace: {rate: 1MiB/s}"
            live = f"aeron:udp?endpoint=${{self}}:24326|{CONTROL}"
            lines.append(f'merges: {{after: {self.pick(64, 512)}KiB, live: "{live}"}}')
        if self.kind == "replicate":
            lines.append("replicated: a")
        return "\n    ".join(
            (
                f"  - id: s{index}",
                f"stream: {1001 + index}",
                "from: a",
                "to: b",
                f"publication: {self.pick('exclusive', 'concurrent')}",
                f'channel: "{channel}"',
                f'receive: "{receive}"',
                f"content: {{bytes: {kib}KiB, message: {{from: 1B, to: {longest}}}{pace}}}",
                *lines,
            )
        )

    def traffic(self) -> str:
        is_simple = self.kind in ("record", "local") and not self.kills
        count = self.pick(1, 1, 2, 3) if is_simple else 1
        streams = [self.stream(index) for index in range(count)]
        if self.kind == "replay":
            place = "aeron:udp?endpoint=${a}:24350"
            streams.append(
                "  - {id: again, stream: 2001, replays: s0, from: b, to: a, "
                f'publication: exclusive, channel: "{place}", receive: "{place}"}}'
            )
        return "\n".join(streams)

    def archives(self) -> str:
        found = [f"{{host: {self.archive}, segment: {self.segment_kib}KiB}}"]
        if self.kind == "replicate":
            larger = [each for each in SEGMENTS if each >= self.term_kib]
            found.append(f"{{host: a, segment: {self.pick(*larger)}KiB}}")
        return f"[{', '.join(found)}]"

    def impairments(self) -> str:
        if self.happens(60):
            return "{}"
        value = self.pick("loss: 3%", "delay: 1ms", "delay: 5ms", "duplicate: 10%")
        return f"{{both: {{{value}}}}}"

    def faults(self) -> str:
        rules = [
            f"{{id: {name}, where: {{link: {link}}}, what: {what}, "
            f"act: {{{act}: {self.pick('5%', '10%')}}}}}"
            for name, link, what, act, percent in RULES
            if self.happens(percent) and (name != REPLAY_RULE or self.kind == "replay")
        ]
        return f"[{', '.join(rules)}]"

    def event(self) -> str:
        """Return the event, or an empty text."""
        if not self.kills and self.happens(50):
            return ""
        at = f"when: {{published: {self.pick(1, 32, 40)}KiB}}"
        process, act = "archive", "{kill: {restart_after: 11s}}"
        if not self.kills:
            process = self.pick("archive", "archive", "driver")
            act = f"{{pause: {self.pick('50ms', '900ms', '3s')}}}"
        whom = f"{{host: {self.archive}, process: {process}}}"
        return f"{{id: event, whom: {whom}, {at}, act: {act}}}"


def scenario(seed: int) -> str:
    """Return the scenario file of a seed."""
    draw = Draw(seed)
    traffic, faults, event = draw.traffic(), draw.faults(), draw.event()
    equal = "recording_equals_published" + (f": {LIMIT}" if draw.kills else "")
    checks = ["delivered_once", equal, *(["merged_into_live"] if draw.kind == "merge" else [])]
    return "\n".join(
        (
            "schema: windtunnel/1",
            f"name: random/archive-{seed}",
            f"about: Seed {seed}, {draw.kind}.",
            f"seeds: {{root: {seed + 1}, count: 1}}",
            "fidelity: [sim, netns]",
            "network:",
            "  hosts: [a, b]",
            f"  link: {{between: [a, b], backend: relay, impairments: {draw.impairments()}}}",
            f"archives: {draw.archives()}",
            "traffic:",
            traffic,
            *([f"faults: {faults}"] if faults != "[]" else []),
            *([f"events: [{event}]"] if event else []),
            *(["timeouts: {client_liveness: 6s}"] if draw.kills else []),
            f"expect: [{', '.join('{' + each + '}' if ':' in each else each for each in checks)}]",
            "budget: {wall: 300s}",
            "",
        )
    )
