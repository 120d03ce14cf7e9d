// The chart of a run: positions over time above, their differences below, and events as marks.
// Only points in the visible time window are drawn. Each zoom draws them again.

class Chart {
  static DASHES = { "pub-lmt": "dot", "snd-lmt": "dash" };
  static SYMBOLS = {
    dropped: "x",
    "lost to impairment": "cross-open",
    NAK: "triangle-down",
    retransmit: "triangle-up",
    "gap fill": "square",
    held: "diamond-open",
    swapped: "star-triangle-up-open",
    displaced: "star-triangle-down-open",
    duplicated: "circle-open",
    "feedback lost": "x-thin-open",
  };
  static ICONS = {
    dropped: "M2 0L6 4 10 0 12 2 8 6 12 10 10 12 6 8 2 12 0 10 4 6 0 2z",
    "lost to impairment": "M4 0H8V4H12V8H8V12H4V8H0V4H4z",
    NAK: "M0 1H12L6 11z",
    retransmit: "M0 11H12L6 1z",
    "gap fill": "M1 1H11V11H1z",
    held: "M6 0L12 6 6 12 0 6z",
    swapped: "M6 0L12 11H0z",
    displaced: "M0 1H12L6 12z",
    duplicated: "M6 1a5 5 0 1 1-.01 0z",
    "feedback lost": "M0 5H12V7H0z",
  };
  static LOSSES = ["dropped", "lost to impairment"];
  static SHORT = { "lost to impairment": "impairment", "feedback lost": "feedback" };
  static LANE = 15; // height of an event lane in pixels, with room for its label
  static GAP = 30; // space between panels in pixels, with room for a panel's title
  static MARGIN = { t: 22, r: 12, b: 42 }; // around the panels, in pixels
  static COLUMN = 2; // width in pixels of a column whose points are reduced
  static CELL = { far: 18, close: 4 }; // grid cell in pixels; one mark is drawn per cell
  static CLOSE_MARKS = 90; // up to this many marks of a kind are drawn large
  static CLOSE_MS = 250; // windows up to this width count as close-ups
  static BANDS_MAX = 8; // number of bands in the legend
  static BIN = 3; // bar width in the event lanes, in pixels
  static LOSS_WINDOW_MS = [2, 60]; // window around one loss: minimum, maximum
  static REPAIR_FACTOR = 3; // width of that window, in repair times

  static isEmpty(data) {
    return !data.streams.some((stream) => stream.lines.length || stream.marks.length);
  }

  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.stream = data.streams[0];
    this.hidden = new Set();
    this.view = this.start();
    this.loss = -1;
    this.build();
    this.draw();
  }

  whole() {
    const { begin_ms: begin, duration_ms: end } = this.data;
    const margin = Math.max((end - begin) * 0.01, 1);
    return { from: begin - margin, to: end + margin };
  }

  /** Initial view: the traffic; the whole run if a stream was not delivered completely. */
  start() {
    const whole = this.whole();
    if (!this.data.is_delivered) return whole;
    const [from, to] = this.data.active_ms;
    const margin = Math.max((to - from) * 0.02, 1);
    return { from: Math.max(from - margin, whole.from), to: Math.min(to + margin, whole.to) };
  }

  build() {
    this.root.replaceChildren();
    this.tabs = this.bar("tablist");
    this.data.streams.forEach((stream) => {
      const id = `stream ${stream.stream_id}`;
      const isNamed = !stream.traffic.startsWith(id.replace(" ", "-"));
      const title = isNamed ? `${stream.traffic} · ${id}` : stream.traffic;
      const tab = this.button(this.tabs, title, () => this.choose(stream));
      tab.setAttribute("role", "tab");
      stream.tab = tab;
    });
    this.tabs.append(Page.element("span", "grow"));
    this.navigation(this.tabs);
    this.legends = Page.element("div");
    this.chips = this.bar("group");
    this.plot = Page.element("div", "plot");
    const hint = Page.element("p", "hint");
    hint.innerHTML =
      '<span class="desk">Drag to zoom, Ctrl+wheel to zoom at the pointer, ' +
      "double-click to show all traffic. " +
      "</span>Click a name to hide it. Lines are interpolated between counter samples.";
    this.root.append(this.legends, this.chips, this.plot, hint);
    this.labels();
  }

  bar(role) {
    const bar = Page.element("div", "bar");
    bar.setAttribute("role", role);
    this.root.append(bar);
    return bar;
  }

  button(parent, text, act, title = "") {
    const button = Page.element("button", "", text);
    button.type = "button";
    if (title) button.title = title;
    button.addEventListener("click", act);
    parent.append(button);
    return button;
  }

  navigation(parent) {
    this.button(parent, "‹ loss", () => this.step(-1), "previous loss");
    this.button(parent, "loss ›", () => this.step(1), "next loss");
    this.button(parent, "◀", () => this.move(-0.5), "earlier");
    this.button(parent, "▶", () => this.move(0.5), "later");
    this.button(parent, "−", () => this.zoom(2.5), "zoom out");
    this.button(parent, "+", () => this.zoom(0.4), "zoom in");
    this.button(
      parent,
      "traffic",
      () => this.show(this.start()),
      "from the first to the last event",
    );
    this.button(parent, "whole run", () => this.show(this.whole()));
  }

  choose(stream) {
    this.stream = stream;
    this.loss = -1;
    this.labels();
    this.show(this.view);
  }

  /** Update legend entries and mark chips for the selected stream. */
  labels() {
    this.data.streams.forEach((each) =>
      each.tab.setAttribute("aria-selected", String(each === this.stream)),
    );
    this.legends.replaceChildren();
    this.values = [];
    [
      ["positions", this.stream.lines],
      ["differences", this.stream.distances],
    ].forEach(([panel, lines]) => {
      const legend = Page.element("div", "legend");
      legend.append(Page.element("span", "panel", panel));
      lines.forEach((line) => legend.append(this.entry(line)));
      if (lines.length) this.legends.append(legend);
    });
    this.legends.append(...this.bandLegend());
    this.chips.replaceChildren(
      Page.element("span", "label", this.stream.marks.length ? "events" : "no events"),
    );
    this.stream.marks.forEach((marks) => this.chips.append(this.chip(marks)));
  }

  /** Return a legend of the bands, if there are any. A click shows a band and what followed it. */
  bandLegend() {
    if (!this.data.bands.length) return [];
    const legend = Page.element("div", "legend");
    legend.append(Page.element("span", "panel", "bands"));
    const { bands } = this.data;
    bands.slice(0, Chart.BANDS_MAX).forEach((band) => {
      const entry = Page.element("span", "entry");
      const swatch = Page.element("span", "swatch");
      swatch.style.background = Page.colour(band.kind);
      const [from, to] = [band.from, band.to].map((each) => Thin.group(Math.round(each)));
      entry.append(swatch, band.name, Page.element("span", "value", `${from} to ${to} ms`));
      const width = band.to - band.from;
      entry.addEventListener("click", () =>
        this.show({ from: band.from - width * 0.2, to: band.to + width * 0.8 }),
      );
      legend.append(entry);
    });
    if (bands.length > Chart.BANDS_MAX) legend.append(`${bands.length - Chart.BANDS_MAX} more`);
    return [legend];
  }

  /** Return a rectangle for each band, behind the lines of all panels. */
  bandShapes() {
    return this.data.bands.map((band) => ({
      type: "rect",
      layer: "below",
      xref: "x",
      yref: "paper",
      x0: band.from,
      x1: band.to,
      y0: 0,
      y1: 1,
      fillcolor: Page.colour(band.kind),
      opacity: 0.16,
      line: { width: 0 },
    }));
  }

  entry(line) {
    const entry = Page.element("span", "entry");
    const stroke = Page.element("span", "stroke");
    stroke.style.borderColor = Page.colour(line.colour || line.name);
    stroke.style.borderTopStyle =
      { dot: "dotted", dash: "dashed" }[line.dash || Chart.DASHES[line.name]] || "solid";
    const value = Page.element("span", "value");
    entry.append(stroke, line.name, value);
    entry.classList.toggle("off", this.hidden.has(line.name));
    entry.addEventListener("click", () => {
      this.toggle(line.name);
      entry.classList.toggle("off", this.hidden.has(line.name));
    });
    this.values.push([line, value]);
    return entry;
  }

  chip(marks) {
    const chip = this.button(this.chips, "", () => {
      this.toggle(marks.kind);
      chip.setAttribute("aria-pressed", String(!this.hidden.has(marks.kind)));
    });
    chip.className = "chip";
    chip.style.setProperty("--kind", Page.colour(marks.kind));
    chip.setAttribute("aria-pressed", String(!this.hidden.has(marks.kind)));
    const icon = `<path d="${Chart.ICONS[marks.kind]}"/>`;
    chip.innerHTML = `<svg viewBox="0 0 12 12" aria-hidden="true">${icon}</svg>`;
    const shown = marks.t.length < marks.count ? `${Thin.group(marks.t.length)} of ` : "";
    chip.append(marks.kind, Page.element("span", "count", shown + Thin.group(marks.count)));
    return chip;
  }

  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    this.draw();
  }

  zoom(factor) {
    const middle = (this.view.from + this.view.to) / 2,
      half = ((this.view.to - this.view.from) / 2) * factor;
    this.show({ from: middle - half, to: middle + half });
  }

  move(share) {
    const by = (this.view.to - this.view.from) * share;
    this.show({ from: this.view.from + by, to: this.view.to + by });
  }

  /** Zoom to the next or previous lost frame or, if there are no losses, event of any kind. */
  step(direction) {
    const marks = this.losses(this.stream.marks)[0] || this.stream.marks[0];
    if (!marks) return;
    const last = marks.t.length - 1;
    const start = this.loss >= 0 ? this.loss : direction > 0 ? -1 : last + 1;
    this.loss = Math.min(last, Math.max(0, start + direction));
    const t = marks.t[this.loss];
    const [least, most] = Chart.LOSS_WINDOW_MS;
    const repair = this.repairOf(marks.position[this.loss], t);
    const ideal = repair === undefined ? most : (repair - t) * Chart.REPAIR_FACTOR;
    const width = Math.min(most, Math.max(least, ideal));
    this.show({ from: t - width * 0.25, to: t + width * 0.75 });
  }

  /** Lost frames: those dropped by a rule first, then those lost to impairments. */
  losses(marks) {
    return Chart.LOSSES.map((kind) => marks.find((each) => each.kind === kind)).filter(Boolean);
  }

  /** Return the time after t at which a position was retransmitted or filled, or undefined. */
  repairOf(position, t) {
    if (!this.stream.repairs) {
      this.stream.repairs = new Map();
      this.stream.marks
        .filter((marks) => marks.kind === "retransmit" || marks.kind === "gap fill")
        .forEach((marks) => {
          marks.position.forEach((each, index) => {
            const times = this.stream.repairs.get(each) || [];
            times.push(marks.t[index]);
            this.stream.repairs.set(each, times);
          });
        });
    }
    return (this.stream.repairs.get(position) || []).find((each) => each > t);
  }

  /** Show a time window; without a position range, the range of the activity in it. */
  show(view) {
    const whole = this.whole();
    const width = Math.max(0.05, Math.min(view.to - view.from, whole.to - whole.from));
    const from = Math.min(Math.max(view.from, whole.from), whole.to - width);
    this.view = { from, to: from + width, range: view.range, below: view.below };
    this.draw();
  }

  draw() {
    const shown = (lines) => lines.filter((line) => !this.hidden.has(line.name));
    const { from, to } = this.view;
    // Limits are far above the positions; including them would compress the positions.
    const near = shown(this.stream.lines).filter((line) => !Chart.DASHES[line.name]);
    const lines = near.length ? near : shown(this.stream.lines);
    const range = this.view.range || Thin.span(lines, from, to, this.places(from, to)) || [0, 1];
    const below = this.view.below || Thin.span(shown(this.stream.distances), from, to) || [0, 1];
    const width = Math.max(this.plot.clientWidth, 300);
    const traces = shown(this.stream.lines).map((line) => this.lineTrace(line, "y", width));
    // The gap line is drawn last, on top.
    traces.push(...shown(this.stream.distances).map((line) => this.lineTrace(line, "y2", width)));
    traces.push(...this.lanes(width));
    const visible = this.stream.marks.filter((marks) => !this.hidden.has(marks.kind));
    traces.push(
      ...this.repairLines(visible),
      ...visible.map((marks) => this.markTrace(marks, range, width)),
    );
    this.busy = true;
    Plotly.react(this.plot, traces, this.layout(range, below), Chart.CONFIG).then(() => {
      this.busy = false;
      this.listen();
      this.plot.dataset.drawn = String(traces.length);
    });
  }

  /** Return the positions of the visible marks, for kinds that have few of them. */
  places(from, to) {
    return this.stream.marks
      .filter((marks) => !this.hidden.has(marks.kind))
      .flatMap((marks) => {
        const begin = Thin.after(marks.t, from),
          end = Thin.after(marks.t, to);
        return end - begin > Chart.CLOSE_MARKS ? [] : [...marks.position.subarray(begin, end)];
      })
      .filter((position) => position >= 0);
  }

  lineTrace(line, axis, width) {
    const points = Thin.line(line, this.view.from, this.view.to, Math.round(width / Chart.COLUMN));
    const above = axis === "y",
      far = this.view.to - this.view.from > 4 * Chart.CLOSE_MS;
    return {
      ...points,
      type: "scatter",
      mode: "lines",
      name: line.name,
      yaxis: axis,
      xaxis: "x",
      line: {
        color: Page.colour(line.colour || line.name),
        dash: line.dash || Chart.DASHES[line.name] || "solid",
        width: above ? (Chart.DASHES[line.name] ? 1.3 : 2) : far ? 0.8 : 1.5,
      },
      hoverinfo: "skip",
    };
  }

  /** Return a line from each loss to its repair, if few losses are visible. */
  repairLines(visible) {
    const { from, to } = this.view;
    const few = (marks) => Thin.after(marks.t, to) - Thin.after(marks.t, from) <= Chart.CLOSE_MARKS;
    const x = [],
      y = [];
    this.losses(visible).filter(few).forEach((lost) => {
      lost.t.forEach((t, index) => {
        const position = lost.position[index],
          end = this.repairOf(position, t);
        if (end === undefined || end < from || t > to) return;
        x.push(t, end, null);
        y.push(position, position, null);
      });
    });
    if (!x.length) return [];
    const line = { color: Page.colour("dropped"), width: 1, dash: "dot" };
    return [
      {
        x,
        y,
        type: "scatter",
        mode: "lines",
        name: "repair",
        hoverinfo: "skip",
        line,
        xaxis: "x",
        yaxis: "y",
      },
    ];
  }

  /** Event counts over time, one lane per kind; each lane has its own scale. */
  lanes(width) {
    const { from, to } = this.view;
    return this.stream.marks.map((marks, lane) => {
      const off = this.hidden.has(marks.kind);
      const bins = off ? [] : Thin.bins(marks.t, from, to, Math.round(width / Chart.BIN));
      const most = bins.reduce((high, bin) => Math.max(high, bin.count), 1);
      const x = [],
        y = [],
        foot = this.stream.marks.length - 1 - lane;
      bins.forEach((bin) => {
        x.push(bin.t, bin.t, null);
        y.push(foot, foot + (0.15 + (0.65 * bin.count) / most), null);
      });
      const line = { color: Page.colour(marks.kind), width: Chart.BIN - 1 };
      return {
        x,
        y,
        type: "scatter",
        mode: "lines",
        name: `lane ${marks.kind}`,
        hoverinfo: "skip",
        line,
        xaxis: "x",
        yaxis: "y3",
      };
    });
  }

  markTrace(marks, range, width) {
    const unplaced = marks.kind === "feedback lost";
    const window = { ...this.view, low: unplaced ? -1 : range[0], high: unplaced ? 1 : range[1] };
    const inCells = (cell) =>
      Thin.marks(marks, window, width / cell, this.plot.clientHeight / 2 / cell);
    const all = inCells(Chart.CELL.close);
    const close = all.length <= Chart.CLOSE_MARKS;
    const kept = close ? all : inCells(Chart.CELL.far);
    return {
      x: kept.map((index) => marks.t[index]),
      y: kept.map((index) => Math.max(marks.position[index], 0)),
      text: kept.map((index) => this.describe(marks, index)),
      type: "scatter",
      mode: "markers",
      name: marks.kind,
      xaxis: "x",
      yaxis: unplaced ? "y2" : "y",
      marker: {
        symbol: Chart.SYMBOLS[marks.kind],
        size: close ? 11 : 6,
        color: Page.colour(marks.kind),
        opacity: 0.92,
        line: {
          width: Chart.SYMBOLS[marks.kind].endsWith("open") ? 1.5 : close ? 1 : 0,
          color: Page.colour(Chart.SYMBOLS[marks.kind].endsWith("open") ? marks.kind : "card"),
        },
      },
      hovertemplate: "%{text}<extra></extra>",
    };
  }

  describe(marks, index) {
    const position = marks.position[index],
      length = marks.length[index],
      detail = marks.detail[index];
    const parts = [`<b>${marks.kind}</b> at ${marks.t[index].toFixed(3)} ms`];
    if (position >= 0) {
      parts.push(`position ${Thin.group(position)} + ${Thin.group(length)} B`);
      if (this.stream.initial_term_id !== null) {
        const term =
          (this.stream.initial_term_id + Math.floor(position / this.stream.term_length)) | 0;
        parts.push(`term ${term}, offset ${Thin.group(position % this.stream.term_length)}`);
      }
    }
    const detailText = {
      dropped: `attempt ${detail}`,
      "lost to impairment": `transmission ${detail}`,
      retransmit: `transmission ${detail}`,
      held: `attempt ${detail}`,
      swapped: `attempt ${detail}`,
      displaced: `attempt ${detail}`,
      duplicated: `attempt ${detail}`,
      "feedback lost": this.data.frame_names[detail] || `type ${detail}`,
    }[marks.kind];
    if (detailText) parts.push(detailText);
    return parts.join("<br>");
  }

  /** Return each panel's vertical range. Lanes have a fixed height, so labels never overlap. */
  domains() {
    const height = this.plot.clientHeight - Chart.MARGIN.t - Chart.MARGIN.b;
    const differences = 0.24;
    const foot = differences + Chart.GAP / height;
    const top = foot + (Math.max(this.stream.marks.length, 1) * Chart.LANE) / height;
    return {
      differences: [0, differences],
      lanes: [foot, top],
      positions: [top + Chart.GAP / height, 1],
    };
  }

  /** Return the width in pixels of the margin that contains lane and position labels. */
  leftMargin(narrow) {
    const longest = Math.max(0, ...this.stream.marks.map((marks) => marks.kind.length));
    return narrow ? 70 : Math.max(84, 12 + Math.ceil(longest * 5.6));
  }

  layout(range, below) {
    const ink = Page.colour("ink"),
      soft = Page.colour("soft"),
      rule = Page.colour("rule");
    const narrow = this.plot.clientWidth < 560;
    const domains = this.domains();
    const left = this.leftMargin(narrow);
    const bytes = ([low, high], count) => {
      const ticks = Thin.byteTicks(low, high, count);
      return {
        range: [low, high],
        tickmode: "array",
        tickvals: ticks.values,
        ticktext: ticks.texts,
        gridcolor: rule,
        zerolinecolor: rule,
        tickfont: { color: soft, size: 11.5 },
        automargin: false,
      };
    };
    const panel = (text, y) => ({
      text,
      x: 0,
      y,
      xref: "paper",
      yref: "paper",
      xanchor: "left",
      yanchor: "bottom",
      showarrow: false,
      font: { color: soft, size: 11.5 },
      borderpad: 2,
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      showlegend: false,
      hovermode: "closest",
      font: { family: "system-ui, sans-serif", color: ink, size: 12 },
      margin: { l: left, ...Chart.MARGIN },
      dragmode: "zoom",
      hoverdistance: 14,
      hoverlabel: {
        bgcolor: Page.colour("card"),
        bordercolor: rule,
        font: { color: ink, size: 12.5 },
        align: "left",
      },
      xaxis: {
        range: [this.view.from, this.view.to],
        ticksuffix: " ms",
        gridcolor: rule,
        zeroline: false,
        anchor: "y2",
        tickfont: { color: soft, size: 11.5 },
        showspikes: true,
        spikemode: "across",
        spikesnap: "cursor",
        spikethickness: 1,
        spikedash: "dot",
        spikecolor: soft,
        separatethousands: true,
        exponentformat: "none",
        nticks: narrow ? 4 : Math.max(4, Math.floor((this.plot.clientWidth - left) / 110)),
      },
      yaxis: { ...bytes(range, 8), domain: domains.positions },
      yaxis2: { ...bytes(below, 4), domain: domains.differences },
      yaxis3: {
        domain: domains.lanes,
        range: [-0.1, Math.max(this.stream.marks.length, 1)],
        fixedrange: true,
        tickmode: "array",
        tickvals: this.stream.marks.map((_, lane) => lane + 0.35),
        showgrid: false,
        ticktext: this.stream.marks
          .map((marks) => (narrow && Chart.SHORT[marks.kind]) || marks.kind)
          .reverse(),
        zeroline: false,
        tickfont: { color: soft, size: 10.5 },
      },
      shapes: this.bandShapes(),
      annotations: [panel("positions", 1), panel("differences", domains.differences[1])],
      separators: ".\u2009",
    };
  }

  listen() {
    if (this.listening) return;
    this.listening = true;
    this.plot.on("plotly_relayout", (change) => this.follow(change));
    this.plot.on("plotly_doubleclick", () => {
      this.show(this.start());
      return false;
    });
    // Without Ctrl, the wheel scrolls the page.
    this.plot.addEventListener("wheel", (event) => this.wheel(event), {
      capture: true,
      passive: false,
    });
    this.plot.addEventListener("mousemove", (event) => this.read(event));
    this.plot.addEventListener("mouseleave", () =>
      this.values.forEach(([, place]) => {
        place.textContent = "";
      }),
    );
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  follow(change) {
    if (this.busy) return;
    const at = (axis) =>
      change[`${axis}.range[0]`] === undefined
        ? undefined
        : [Number(change[`${axis}.range[0]`]), Number(change[`${axis}.range[1]`])];
    const time = at("xaxis"),
      range = at("yaxis"),
      below = at("yaxis2");
    if (!time && !range && !below) return;
    const [from, to] = time || [this.view.from, this.view.to];
    const kept = time ? {} : this.view;
    this.show({ from, to, range: range || kept.range, below: below || kept.below });
  }

  wheel(event) {
    event.stopImmediatePropagation();
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const t = this.timeAt(event);
    if (t === null) return;
    const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006);
    this.show({ from: t - (t - this.view.from) * factor, to: t + (this.view.to - t) * factor });
  }

  timeAt(event) {
    const axis = this.plot._fullLayout && this.plot._fullLayout.xaxis;
    if (!axis) return null;
    const x = event.clientX - this.plot.getBoundingClientRect().left - axis._offset;
    return x < 0 || x > axis._length ? null : axis.p2d(x);
  }

  /** Show the value of each line at the pointer in the legend. */
  read(event) {
    const t = this.timeAt(event);
    this.values.forEach(([line, place]) => {
      const value = t === null ? null : Thin.valueAt(line, t);
      place.textContent = value === null ? "" : Thin.group(value);
    });
  }

  resize() {
    if (this.plot.clientWidth === this.drawnWidth) return;
    this.drawnWidth = this.plot.clientWidth;
    Plotly.Plots.resize(this.plot);
    this.draw();
  }

  /** Redraw the chart after the theme has changed. */
  repaint() {
    this.labels();
    this.draw();
  }
}
Chart.CONFIG = {
  displaylogo: false,
  responsive: false,
  scrollZoom: false,
  doubleClick: false,
  displayModeBar: false,
  showTips: false,
};
