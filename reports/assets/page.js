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

  /** Unpack a document that reports/packing.py packed. */
  async function unpack(text) {
    const buffer = await inflate(text);
    const length = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const columns = new Float64Array(buffer, Math.ceil((4 + length) / 8) * 8);
    const filled = (value) => {
      if (Array.isArray(value)) return value.map(filled);
      if (value === null || typeof value !== "object") return value;
      if ("at" in value && "count" in value && Object.keys(value).length === 2) {
        return columns.subarray(value.at, value.at + value.count);
      }
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
