// Decimation for charts: selects the points of a line and the marks to draw in a time window.

const Thin = (() => {
  "use strict";

  /** Return the index of the first element of an ascending array that is greater than `value`. */
  function after(array, value) {
    let low = 0,
      high = array.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (array[middle] <= value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Return the last sample at or before time t, or null before the first sample. */
  function valueAt(line, t) {
    const index = after(line.t, t) - 1;
    return index < 0 ? null : line.v[index];
  }

  /**
   * Return the part of a line within [from, to], with at most 4 points per column: the first,
   * lowest, highest and last point of each column, which draw the same pixels as all of its points
   * if a column is a pixel. One point outside each edge continues the line to that edge.
   */
  function line(line, from, to, columns) {
    const begin = Math.max(0, after(line.t, from) - 1);
    const end = Math.min(line.t.length, after(line.t, to) + 1);
    const x = [],
      y = [];
    const put = (index) => {
      x.push(line.t[index]);
      y.push(line.v[index]);
    };
    if (end - begin <= columns * 4) {
      for (let index = begin; index < end; index++) put(index);
      return { x, y };
    }
    // Columns of time, not of points: a slope would extend across a plateau that is wider than one.
    const columnOf = (index) => Math.floor(((line.t[index] - from) * columns) / (to - from));
    let first = begin;
    while (first < end) {
      const column = columnOf(first);
      let low = first,
        high = first,
        last = first;
      while (last + 1 < end && columnOf(last + 1) === column) {
        last++;
        if (line.v[last] < line.v[low]) low = last;
        if (line.v[last] > line.v[high]) high = last;
      }
      [...new Set([first, low, high, last])].sort((a, b) => a - b).forEach(put);
      first = last + 1;
    }
    return { x, y };
  }

  /** Return the indices of marks in the window, one per grid cell, because others would overlap. */
  function marks(marks, window, columns, rows) {
    const begin = Math.max(0, after(marks.t, window.from) - 1);
    const end = after(marks.t, window.to);
    const taken = new Set(),
      kept = [];
    const perColumn = columns / (window.to - window.from),
      perRow = rows / (window.high - window.low);
    for (let index = begin; index < end; index++) {
      const t = marks.t[index],
        position = Math.max(marks.position[index], 0);
      if (t < window.from || position < window.low || position > window.high) continue;
      const cell =
        Math.floor((t - window.from) * perColumn) * 65536 +
        Math.floor((position - window.low) * perRow);
      if (taken.has(cell)) continue;
      taken.add(cell);
      kept.push(index);
    }
    return kept;
  }

  /** Count ascending times in `count` equal bins; empty bins are omitted. */
  function bins(times, from, to, count) {
    const found = [],
      width = (to - from) / count;
    let index = after(times, from);
    while (index < times.length && times[index] <= to) {
      const bin = Math.min(Math.floor((times[index] - from) / width), count - 1);
      const end = after(times, Math.max(from + (bin + 1) * width, times[index]));
      found.push({ t: from + (bin + 0.5) * width, count: end - index });
      index = end;
    }
    return found;
  }

  /** Return the value at time t, interpolated between points and constant outside of them. */
  function between(line, t) {
    const next = after(line.t, t);
    if (next === 0) return line.v[0];
    if (next === line.t.length) return line.v[next - 1];
    const share = (t - line.t[next - 1]) / (line.t[next] - line.t[next - 1]);
    return line.v[next - 1] + share * (line.v[next] - line.v[next - 1]);
  }

  /** Return the range of the lines within [from, to] and of `more`, with a margin; or null. */
  function span(lines, from, to, more = []) {
    const seen = { low: Infinity, high: -Infinity };
    const put = (value) => {
      if (value < seen.low) seen.low = value;
      if (value > seen.high) seen.high = value;
    };
    for (const each of lines) {
      if (each.t[0] > to) continue;
      put(between(each, Math.max(from, each.t[0])));
      put(between(each, to));
      const end = after(each.t, to);
      for (let index = after(each.t, from); index < end; index++) put(each.v[index]);
    }
    more.forEach(put);
    if (seen.low > seen.high) return null;
    const margin = (seen.high - seen.low) * 0.06 || 64;
    return [seen.low - margin, seen.high + margin];
  }

  const UNITS = [
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
    ["B", 1],
  ];

  /** Return ticks at multiples of a power of two, which coincide with term boundaries. */
  function byteTicks(low, high, count) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2((high - low) / count)));
    const [unit, size] = UNITS.find(([, each]) => step >= each);
    const values = [],
      texts = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      values.push(value);
      texts.push(value === 0 ? "0" : `${group(value / size)} ${unit}`);
    }
    return { values, texts };
  }

  /** Format a number with thin spaces: 1234567 -> "1 234 567". */
  function group(value) {
    return Math.round(value)
      .toString()
      .replace(/\B(?=(\d{3})+$)/g, "\u2009");
  }

  return { after, valueAt, line, marks, bins, span, between, byteTicks, group };
})();
if (typeof module === "object") module.exports = Thin;
