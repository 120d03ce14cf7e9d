// The charts of a capture report: positions, gaps, stalls, repair times and links, of one stream or
// all. Times are in milliseconds since the first frame. Charts over time zoom together.

class Chart {
  static LINES = {
    limit: { colour: "snd-lmt", dash: "dash" },
    high: { colour: "rcv-hwm" },
    rebuilt: { colour: "rcv-pos" },
    consumed: { colour: "sub-pos", dash: "dot" },
  };
  static OUTCOMES = {
    repaired: { colour: "retransmit", symbol: "triangle-up" },
    reordered: { colour: "swapped", symbol: "diamond" },
    filled: { colour: "swapped", symbol: "diamond-open" },
    passed: { colour: "gap-fill", symbol: "square" },
    elsewhere: { colour: "rcv-pos", symbol: "square-open" },
    open: { colour: "dropped", symbol: "x" },
  };
  static LOST = {
    "before capture": "before the capture point",
    "behind capture": "after the capture point",
  };
  static CAUSES = {
    hole: "dropped",
    receiver: "rcv-pos",
    feedback: "NAK",
    window: "window-left",
    timeout: "pause",
  };
  static WAITING = {
    hole: "waiting for a repair",
    receiver: "waiting for the receiver",
    feedback: "status messages lost",
    window: "window used up within a round trip",
    timeout: "until no longer waiting for the receiver",
  };
  static BINS_A_DECADE = 8;
  static TIMED = ["positions", "gaps", "stalls"];

  static isEmpty(data) {
    return !data.streams.length;
  }

  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.chosen = data.streams;
    this.span = null;
    this.build();
    this.draw();
  }

  build() {
    this.root.replaceChildren();
    const bar = Page.element("div", "bar");
    const label = Page.element("label", "label", "stream ");
    this.select = document.createElement("select");
    this.select.id = "stream";
    const all = this.data.streams.length;
    if (all > 1) this.select.append(new Option(`all ${all} flows`, "all"));
    this.data.streams.forEach((stream, index) =>
      this.select.append(new Option(stream.label, String(index))),
    );
    this.select.value = "0";
    this.select.addEventListener("change", () => this.choose(this.select.value));
    label.append(this.select);
    bar.append(label, Page.element("span", "grow"));
    [
      ["traffic", () => this.zoom(null)],
      ["whole capture", () => this.zoom(this.data.span_ms)],
    ].forEach(([name, act]) => {
      const button = Page.element("button", "", name);
      button.type = "button";
      button.addEventListener("click", act);
      bar.append(button);
    });
    this.root.append(bar);
    this.plots = {};
    this.section("positions", "Positions", "Stream positions over time; stalls are shaded.");
    this.section("gaps", "Gaps", "Time until each gap was repaired or, in captures near the sender, until it was retransmitted.");
    this.section("stalls", "Flow control stalls", "Pauses of the sender caused by flow control.");
    const pair = Page.element("div", "pair");
    this.root.append(pair);
    this.section("repairs", "Repair times", "Distribution of the times in the chart of gaps.", pair);
    this.section("links", "Losses by link", "Share of affected frames on each link.", pair);
    this.chosen = [this.data.streams[0]];
    this.filterTables();
    const hint = "Drag to zoom, double-click to show all traffic, click a legend entry to hide it.";
    this.root.append(Page.element("p", "hint", hint));
  }

  section(name, title, about, parent = this.root) {
    const place = Page.element("div", "panel-of-chart");
    place.append(Page.element("h3", "", title), Page.element("p", "about", about));
    const plot = Page.element("div", "plot");
    plot.dataset.chart = name;
    const none = Page.element("p", "hint none", "");
    place.append(plot, none);
    parent.append(place);
    this.plots[name] = { plot, none };
  }

  choose(value) {
    this.chosen = value === "all" ? this.data.streams : [this.data.streams[Number(value)]];
    this.filterTables();
    this.draw();
  }

  /** Hide table rows of other streams. */
  filterTables() {
    const ids = new Set(this.chosen.map((stream) => stream.id));
    const all = this.chosen.length === this.data.streams.length;
    document.querySelectorAll("tr[data-stream]").forEach((row) => {
      row.hidden = !all && !ids.has(row.dataset.stream);
    });
  }

  zoom(span) {
    this.span = span;
    Chart.TIMED.forEach((name) => {
      const { plot } = this.plots[name];
      if (!plot.hidden) Plotly.relayout(plot, this.range());
    });
  }

  range() {
    const [from, to] = this.span || this.data.active_ms;
    return { "xaxis.range": [from, to] };
  }

  draw() {
    this.show("positions", this.positions(), "This stream has no samples.", {
      height: 420,
      yaxis: { title: "position, bytes", tickformat: "~s" },
      shapes: this.shades(),
    });
    this.show("gaps", this.gaps(), "No gaps.", {
      height: 260,
      yaxis: { title: "time, ms", type: "log", tickformat: "~g" },
    });
    const stalls = this.stalls();
    this.show("stalls", stalls, "No stalls: no flow control pause of 10 ms or more.", {
      height: 120 + 26 * new Set(stalls.flatMap((trace) => trace.y)).size,
      barmode: "overlay",
      yaxis: { fixedrange: true },
    });
    this.show("repairs", this.repairs(), "No repairs.", {
      height: 300,
      xaxis: { title: "time, ms", type: "log", tickformat: "~g" },
      yaxis: { title: "gaps" },
      bargap: 0.06,
    });
    const noLinks = "Losses by link need captures at two or more vantage points.";
    this.show("links", this.links(), noLinks, {
      height: 300,
      barmode: "group",
      xaxis: { automargin: true, type: "category" },
      yaxis: { title: "% of frames sent", rangemode: "tozero" },
    });
    this.root.dataset.drawn = "1";
  }

  show(name, traces, nothing, options) {
    const { plot, none } = this.plots[name];
    const empty = traces.every((trace) => !trace.x.length);
    plot.hidden = empty;
    none.textContent = empty ? nothing : "";
    if (empty) return;
    const ink = Page.colour("ink"),
      rule = Page.colour("rule"),
      soft = Page.colour("soft");
    const timed = Chart.TIMED.includes(name);
    const axis = { gridcolor: rule, zerolinecolor: rule, linecolor: rule, tickcolor: rule };
    const text = { font: { size: 12, color: soft } };
    const titled = ({ title, ...rest }) => ({
      ...axis,
      ...rest,
      ...(title ? { title: { text: title, ...text } } : {}),
    });
    const time = { title: "ms since the first frame", range: this.range()["xaxis.range"] };
    const layout = {
      height: options.height,
      barmode: options.barmode,
      bargap: options.bargap,
      shapes: options.shapes || [],
      margin: { l: 84, r: 16, t: 8, b: 46 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink, size: 12 },
      hovermode: "closest",
      hoverlabel: { align: "left" },
      legend: { orientation: "h", y: 1.08, x: 0 },
      showlegend: traces.length > 1,
      xaxis: titled(timed ? time : options.xaxis || {}),
      yaxis: titled(options.yaxis),
    };
    const settings = { displaylogo: false, responsive: true, displayModeBar: false };
    Plotly.react(plot, traces, layout, settings).then(() => {
      if (!timed || plot.dataset.follows) return;
      plot.dataset.follows = "1";
      plot.on("plotly_relayout", (change) => this.follow(change));
    });
  }

  /** Zoom all charts over time together. */
  follow(change) {
    const from = change["xaxis.range[0]"],
      to = change["xaxis.range[1]"];
    if (from !== undefined && to !== undefined) this.zoom([Number(from), Number(to)]);
    else if (change["xaxis.autorange"]) this.zoom(null);
  }

  several() {
    return this.chosen.length > 1;
  }

  positions() {
    const names = this.several() ? ["rebuilt"] : Object.keys(Chart.LINES);
    return this.chosen.flatMap((stream) => [
      ...names.map((name) => ({
        x: stream.t,
        y: stream[name],
        type: "scatter",
        mode: "lines",
        name: this.several() ? stream.label : name,
        line: {
          width: 1.6,
          shape: name === "limit" || name === "consumed" ? "hv" : "linear",
          dash: Chart.LINES[name].dash || "solid",
          ...(this.several() ? {} : { color: Page.colour(Chart.LINES[name].colour) }),
        },
        hovertemplate: `${name} %{y:,d}<br>%{x:,.3f} ms<extra></extra>`,
      })),
      ...this.gapTraces(stream, "position"),
    ]);
  }

  gaps() {
    return this.chosen.flatMap((stream) => this.gapTraces(stream, "wait_ms"));
  }

  // In captures near the sender, only the time until a retransmit is known.
  waits(gaps) {
    return gaps.repair_ms.map((repair, index) => repair ?? gaps.resend_ms[index]);
  }

  gapTraces(stream, field) {
    const values = field === "wait_ms" ? this.waits(stream.gaps) : stream.gaps[field];
    return Object.entries(Chart.OUTCOMES).flatMap(([outcome, { colour, symbol }]) => {
      const picked = [...stream.gaps.t.keys()].filter(
        (index) => stream.gaps.outcome[index] === outcome && values[index] !== null,
      );
      if (!picked.length || (field === "position" && this.several())) return [];
      return {
        x: picked.map((index) => stream.gaps.t[index]),
        y: picked.map((index) => values[index]),
        text: picked.map((index) => this.describe(stream.gaps, index)),
        type: "scatter",
        mode: "markers",
        name: this.several() ? `${outcome} · ${stream.label}` : outcome,
        marker: { color: Page.colour(colour), symbol, size: 7, opacity: 0.75 },
        hovertemplate: "%{text}<extra></extra>",
      };
    });
  }

  describe(gaps, index) {
    const repair = gaps.repair_ms[index];
    const resend = gaps.resend_ms[index];
    return [
      `${gaps.length[index].toLocaleString("en")} bytes at ${gaps.position[index].toLocaleString("en")}`,
      `${gaps.outcome[index]}, lost ${Chart.LOST[gaps.cause[index]]}`,
      `${gaps.naks[index]} NAK${gaps.naks[index] === 1 ? "" : "s"}`,
      repair !== null
        ? `${repair.toPrecision(3)} ms until repaired`
        : resend !== null
          ? `${resend.toPrecision(3)} ms until retransmitted; the repair was not captured`
          : gaps.outcome[index] === "repaired"
            ? "repair not captured"
            : "not repaired",
    ].join("<br>");
  }

  shades() {
    if (this.several()) return [];
    const stalls = this.chosen[0].stalls;
    return stalls.from.map((from, index) => ({
      type: "rect",
      xref: "x",
      yref: "paper",
      x0: from,
      x1: stalls.to[index],
      y0: 0,
      y1: 1,
      line: { width: 0 },
      fillcolor: Page.colour(Chart.CAUSES[stalls.cause[index]]),
      opacity: 0.16,
      layer: "below",
    }));
  }

  stalls() {
    return Object.entries(Chart.CAUSES).map(([cause, colour]) => {
      const picked = this.chosen.flatMap((stream) =>
        stream.stalls.from.flatMap((from, index) =>
          stream.stalls.cause[index] === cause
            ? [{ label: stream.short, from, to: stream.stalls.to[index] }]
            : [],
        ),
      );
      return {
        type: "bar",
        orientation: "h",
        name: Chart.WAITING[cause],
        base: picked.map((each) => each.from),
        x: picked.map((each) => each.to - each.from),
        y: picked.map((each) => each.label),
        width: picked.map(() => 0.6),
        marker: { color: Page.colour(colour), line: { width: 1, color: Page.colour(colour) } },
        hovertemplate: "%{x:,.1f} ms from %{base:,.1f} ms<extra></extra>",
      };
    });
  }

  repairs() {
    const times = this.chosen.flatMap((stream) =>
      [...stream.gaps.t.keys()]
        .filter((index) => stream.gaps.outcome[index] === "repaired")
        .map((index) => this.waits(stream.gaps)[index])
        .filter((wait) => wait !== null)
        .map((wait) => Math.max(wait, 1e-6)),
    );
    const bins = new Map();
    times.forEach((time) => {
      const bin = Math.floor(Math.log10(time) * Chart.BINS_A_DECADE);
      bins.set(bin, (bins.get(bin) || 0) + 1);
    });
    const kept = [...bins.keys()].sort((a, b) => a - b);
    const edge = (bin) => 10 ** (bin / Chart.BINS_A_DECADE);
    return [
      {
        type: "bar",
        name: "gaps",
        x: kept.map((bin) => Math.sqrt(edge(bin) * edge(bin + 1))),
        width: kept.map((bin) => (edge(bin + 1) - edge(bin)) * 0.94),
        y: kept.map((bin) => bins.get(bin)),
        text: kept.map(
          (bin) => `${edge(bin).toPrecision(3)} to ${edge(bin + 1).toPrecision(3)} ms`,
        ),
        textposition: "none",
        marker: { color: Page.colour("retransmit") },
        hovertemplate: "%{y} gaps of %{text}<extra></extra>",
      },
    ];
  }

  links() {
    const ids = new Set(this.chosen.map((stream) => stream.stream));
    const links = this.data.links.filter((link) => ids.has(link.stream));
    return [
      ["lost", "dropped"],
      ["reordered", "swapped"],
      ["copied", "duplicated"],
    ].map(([name, colour]) => ({
      type: "bar",
      name,
      x: links.map((link) => link.label),
      y: links.map((link) => (100 * link[name]) / Math.max(link.sent, 1)),
      text: links.map((link) => `${link[name].toLocaleString("en")}`),
      customdata: links.map((link) => `of ${link.sent.toLocaleString("en")} frames`),
      marker: { color: Page.colour(colour) },
      hovertemplate: `%{text} %{customdata} ${name}<extra></extra>`,
    }));
  }

  repaint() {
    this.draw();
  }
}
