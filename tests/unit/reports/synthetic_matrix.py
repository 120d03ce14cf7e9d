"""A synthetic matrix document, like one that a command writes."""

from windtunnel.harness.artifact.run.matrix import Matrix, MatrixCell, MatrixPeer
from windtunnel.harness.artifact.run.suite import SuiteRun

S = 1_000_000_000
BEGIN = 1_700_000_000 * S
PUBLISHERS = ("ours", "pyaeron")
SUBSCRIBERS = ("ours", "java")


def make_matrix(outcomes: dict[tuple[str, str, str], tuple[str, ...]] | None = None) -> Matrix:
    """Two scenarios, two supported and two unsupported pairs, whose default outcome is PASS."""
    given = outcomes or {}
    cells = []
    for scenario in ("matrix/clean", "matrix/loss"):
        for publisher in PUBLISHERS:
            for subscriber in SUBSCRIBERS:
                usual = ("UNSUPPORTED",) if subscriber == "java" else ("PASS", "PASS")
                runs = given.get((scenario, publisher, subscriber), usual)
                cells.append(_cell(scenario, publisher, subscriber, runs))
    return Matrix(
        matrix_id="matrix-made",
        fidelity="netns",
        command=["windtunnel", "matrix"],
        jobs=2,
        publishers=list(PUBLISHERS),
        subscribers=list(SUBSCRIBERS),
        started_ns=BEGIN,
        ended_ns=BEGIN + 90 * S,
        exit_code=0,
        peers=[
            MatrixPeer("ours", "1.53.0 commit=windtunnel"),
            MatrixPeer("pyaeron", "1.53.0"),
            MatrixPeer("java", missing="AERON_ALL_JAR is not set"),
        ],
        cells=cells,
    )


def _cell(scenario: str, publisher: str, subscriber: str, outcomes: tuple[str, ...]) -> MatrixCell:
    runs = [
        SuiteRun(
            folder=f"{scenario.replace('/', '-')}-s{seed}",
            scenario=scenario,
            seed=seed,
            outcome=outcome,
            reason="all hold" if outcome == "PASS" else f"because | of <{outcome}> \x1b[0m",
            started_ns=BEGIN,
            ended_ns=BEGIN + 2 * S,
        )
        for seed, outcome in enumerate(outcomes, 7)
    ]
    worst = next((run for run in runs if run.outcome != "PASS"), runs[0])
    return MatrixCell(
        scenario=scenario,
        publisher=publisher,
        subscriber=subscriber,
        suite=f"{publisher}-to-{subscriber}",
        planned_count=len(runs),
        outcome=worst.outcome,
        reason=worst.reason,
        pass_count=outcomes.count("PASS"),
        runs=runs,
    )
