// Page script: unpacks embedded data, draws a chart when it scrolls into view, switches the theme.

const Page = (() => {
  "use strict";

  const charts = [];

  function element(tag, className = "", text = "") {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  /** Return a colour from the style sheet, whose names have dashes instead of blanks. */
  function colour(name) {
    return getComputedStyle(document.documentElement)
      .getPropertyValue(`--${name.replaceAll(" ", "-")}`)
      .trim();
  }

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  /** The columns of a document: words whose bytes are stored lowest first, all of one rank together. */
  class Columns {
    constructor(planes) {
      const count = planes.length / 8;
      const bytes = new Uint8Array(planes.length);
      for (let rank = 0; rank < 8; rank++) {
        for (let word = 0; word < count; word++) {
          bytes[8 * word + rank] = planes[rank * count + word];
        }
      }
      this.floats = new Float64Array(bytes.buffer);
      this.low = new Uint32Array(bytes.buffer);
      this.high = new Int32Array(bytes.buffer);
    }

    column({ at, count, per }) {
      if (per === 0) return this.floats.subarray(at, at + count);
      const values = new Float64Array(count);
      let sum = 0;
      for (let index = 0; index < count; index++) {
        const word = 2 * (at + index);
        sum += this.high[word + 1] * 2 ** 32 + this.low[word];
        values[index] = sum / per;
      }
      return values;
    }
  }

  /** Unpack a document that reports/charts/packing.py packed. */
  async function unpack(text) {
    const buffer = await inflate(text);
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const columns = new Columns(new Uint8Array(buffer, Math.ceil((4 + length) / 8) * 8));
    const filled = (value) => {
      if (Array.isArray(value)) return value.map(filled);
      if (value === null || typeof value !== "object") return value;
      if ("at" in value && "count" in value && "per" in value) return columns.column(value);
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filled(each)]));
    };
    return filled(header);
  }

  let library = null;

  function loadLibrary() {
    library =
      library ||
      inflate(document.getElementById("library").textContent).then((buffer) => {
        const script = document.createElement("script");
        script.textContent = new TextDecoder().decode(buffer);
        document.head.append(script);
      });
    return library;
  }

  async function drawChart(root) {
    try {
      await loadLibrary();
      const data = await unpack(document.getElementById(root.dataset.series).textContent);
      if (Chart.isEmpty(data)) root.textContent = "No data to draw.";
      else charts.push(new Chart(root, data));
    } catch (error) {
      root.textContent = `The chart cannot be drawn: ${error.message}`;
      root.classList.add("broken");
      throw error;
    }
  }

  function watch() {
    if (!("DecompressionStream" in window)) {
      document.querySelectorAll("[data-series]").forEach((root) => {
        root.textContent = "Charts need a browser with DecompressionStream (2023 or later).";
      });
      return;
    }
    const seen = new IntersectionObserver(
      (entries) =>
        entries.forEach((entry) => {
          if (!entry.isIntersecting) return;
          seen.unobserve(entry.target);
          drawChart(entry.target);
        }),
      { rootMargin: "300px" },
    );
    document.querySelectorAll("[data-series]").forEach((root) => seen.observe(root));
  }

  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = theme === "dark" ? "light" : "dark";
    charts.forEach((chart) => chart.repaint());
  }

  function start() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    setTheme(dark.matches ? "dark" : "light");
    dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
    document.getElementById("theme").addEventListener("click", () => {
      setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    });
    document.querySelectorAll("[data-copy]").forEach((button) =>
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.previousElementSibling.textContent);
        button.textContent = "copied";
      }),
    );
    watch();
  }

  return { element, colour, start, charts };
})();
document.addEventListener("DOMContentLoaded", Page.start);
