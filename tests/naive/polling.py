"""Reference implementation of polls of one term: frames are tuples in a list.

A frame is (payload, is padding); it occupies its payload and header up to the next multiple of 32.
"""

CONTINUE, COMMIT, BREAK, ABORT = "CONTINUE", "COMMIT", "BREAK", "ABORT"


def occupied(payload):
    return (len(payload) + 32 + 31) // 32 * 32


def controlled_poll(frames, position, limit_position, fragment_limit, answers):
    """Return the result of a controlled poll of frames that begin at position 0.

    answers: the handler's actions for the fragments, in order; CONTINUE after the last one
    Returns: (payloads delivered, their positions, fragments counted, final position, positions
              stored in the counter)
    """
    at, delivered, positions, stored, count = 0, [], [], [], 0
    answers = list(answers)
    reached = position
    for payload, is_padding in frames:
        begin, at = at, at + occupied(payload)
        if begin < position:
            continue
        if count >= fragment_limit or begin >= limit_position:
            break
        if is_padding:
            reached = at
            continue
        answer = answers.pop(0) if answers else CONTINUE
        delivered.append(payload)
        positions.append(at)
        if answer == ABORT:
            break
        count += 1
        reached = at
        if answer == COMMIT:
            stored.append(at)
        if answer == BREAK:
            break
    if reached > (stored[-1] if stored else position):
        stored.append(reached)
    return delivered, positions, count, reached, stored


def peek(frames, initial_position, limit_position, answers):
    """Return the payloads that a peek at unfragmented messages delivers, and its end position."""
    without_commit = [CONTINUE if answer == COMMIT else answer for answer in answers]
    delivered, _, _, reached, _ = controlled_poll(
        frames, initial_position, limit_position, 1 << 60, without_commit
    )
    return delivered, reached
