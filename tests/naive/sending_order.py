"""Reference implementation of the sending order of one flow's packets."""

STEP_MAX, LATE_MAX, OVERTAKEN_MAX = 1_024, 1 << 14, 1_024
STEPS_MIN, ODD_SHARE, WEIGHED_MAX = 4, 8, 512
NUMBERS = 1 << 16


def orders_of(packets):
    """Return (order or None, is trusted) for each (identification or None, packet, position)."""
    results, orders = [], {}
    latest = last = None
    steps = odd = 0
    for index, (identification, packet, start) in enumerate(packets):
        if identification is None:
            results.append((None, False))
            continue
        if latest is None:
            order, latest = NUMBERS + identification, index
        elif packet == packets[last][1]:
            order = orders[last]
        else:
            ahead = (identification - orders[latest]) % NUMBERS
            highest = max(each[2] for each in packets[:index] if each[0] is not None)
            behind = NUMBERS - ahead
            if 0 < ahead < NUMBERS // 2:
                order = orders[latest] + ahead
                steps, odd = steps + (ahead <= STEP_MAX), odd + (ahead > STEP_MAX)
                latest = index
            elif ahead == 0:
                order = orders[latest]
                odd += abs(start - packets[latest][2]) >= 1 << 16
            elif behind > LATE_MAX or (start > highest and behind > OVERTAKEN_MAX):
                order, odd, latest = orders[latest] + ahead, odd + 1, index
            else:
                order = orders[latest] - behind
        orders[index], last = order, index
        if steps + odd > WEIGHED_MAX:
            steps, odd = steps // 2, odd // 2
        results.append((order, steps >= STEPS_MIN and odd * ODD_SHARE <= steps))
    return results
