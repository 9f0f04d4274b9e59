// Curves over rounds. Plotly is loaded when the first is drawn.

import { h, last, show, told } from "./dom.js";

const LIGHT = ["#0b66a8", "#c8500a", "#00805c", "#a8458a", "#9a6a00", "#3d7fb5", "#6b4a3a", "#555b66"];
const DARK = ["#5cb8f2", "#ff9457", "#3ad0a4", "#ec9fd0", "#f4bf4f", "#9ed2f5", "#d0a894", "#b7bdc8"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
export const FIGURES = [
  { key: "tested", title: (measure) => (measure === "test RMSE" ? "Test error (RMSE)" : "Test accuracy"), digits: 3, unit: "", says: "of the access point's model on test data" },
  { key: "loss", title: () => "Training loss", digits: 3, unit: "", says: "mean over devices, on their own data" },
  { key: "energy_mj", title: () => "Energy per round", digits: 1, unit: "mJ", says: "mean over the devices that uploaded" },
  { key: "spread_mj", title: () => "Energy spread", digits: 2, unit: "mJ", says: "std across devices of their mean so far" },
];

export const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
export const colour = (place) => { const all = dark() ? DARK : LIGHT; return all[place % all.length]; };
const own = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let loading = null;
function plotly() {
  loading ??= new Promise((done, failed) => {
    const script = h("script", { src: "/static/plotly.js" });
    script.onload = () => done(window.Plotly);
    script.onerror = failed;
    document.head.append(script);
  });
  return loading;
}

/** Ticks on whole rounds, at most about seven. */
function tickEvery(rounds) {
  const least = rounds / 7;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least) ?? power * 10;
}

function layout(rounds, figure) {
  const [ink, line] = [own("--quiet"), own("--line")];
  const axis = { gridcolor: line, linecolor: line, zeroline: false, tickfont: { color: ink, size: 12 }, automargin: true };
  return {
    height: 250, margin: { l: 44, r: 12, t: 8, b: 36 }, showlegend: false, uirevision: "kept",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", color: own("--ink"), size: 13 },
    hovermode: "x unified", hoverlabel: { bgcolor: own("--card"), bordercolor: line, font: { color: own("--ink") } },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    xaxis: { ...axis, title: { text: "round", font: { size: 12, color: ink }, standoff: 6 }, dtick: tickEvery(rounds), tick0: 0, range: [rounds > 1 ? 0.5 : 0, rounds + 0.5], showgrid: false, unifiedhovertitle: { text: "round %{x}" } },
    yaxis: { ...axis, nticks: 6, ticksuffix: figure.unit ? ` ${figure.unit}` : "", rangemode: figure.key === "spread_mj" ? "tozero" : "normal" },
  };
}

/** Four figures with one legend. A line is { label, colour, dash, tracks }: a scheme of a run, with all its seeds. */
export function figures() {
  const hidden = new Set();
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines shown" });
  const parts = FIGURES.map((figure) => {
    const title = h("h3", {});
    const plot = h("div", { class: "plot", role: "img" });
    const values = h("div", { class: "values" });
    const none = h("p", { class: "none quiet", hidden: true }, "No values of this are stored: in a federation, devices may keep them to themselves.");
    const table = h("details", { ontoggle: () => draw() }, h("summary", {}, "Values as a table"), values);
    return { figure, title, plot, none, table, values, element: h("figure", { class: "card", id: `figure-${figure.key}` }, h("figcaption", {}, title, h("span", { class: "quiet" }, figure.says)), none, plot, table) };
  });
  let lines = [];
  let busy = false;
  let again = false;

  async function draw() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const shown = lines.filter((line) => !hidden.has(line.label));
      const rounds = Math.max(1, ...lines.flatMap((line) => line.tracks.map((track) => track.rounds)));
      show(legend, lines.map((line) => h("button", {
        class: "key", "aria-pressed": String(!hidden.has(line.label)), colour: colour(line.colour),
        onclick: () => { hidden.has(line.label) ? hidden.delete(line.label) : hidden.add(line.label); draw(); },
      }, h("span", { class: `swatch ${DASHES[line.dash % DASHES.length]}`, "aria-hidden": "true" }), line.label)));
      for (const part of parts) tell(part, shown);
      const Plotly = await plotly();
      for (const part of parts) {
        if (!part.plot.isConnected) return;
        if (part.plot.hidden) continue;
        await Plotly.react(part.plot, shown.flatMap((line) => traces(line, part.figure)), layout(rounds, part.figure), { displayModeBar: false, responsive: true, showTips: false });
      }
    } finally {
      busy = false;
      if (again) { again = false; draw(); }
    }
  }

  return {
    element: h("div", {}, legend, h("div", { class: "figures" }, parts.map((part) => part.element))),
    draw(now) { lines = now; return draw(); },
    repaint: draw,
    leave() { if (window.Plotly) for (const part of parts) window.Plotly.purge(part.plot); },
  };
}

function traces(line, figure) {
  return line.tracks.map((track) => ({
    x: track[figure.key].map((_, place) => place + 1), y: track[figure.key], connectgaps: true,
    name: line.tracks.length > 1 ? `${line.label}, seed ${track.seed}` : line.label,
    mode: track.rounds === 1 ? "markers" : "lines", opacity: line.tracks.length > 1 ? 0.7 : 1,
    line: { color: colour(line.colour), width: line.tracks.length > 1 ? 1.5 : 2.2, dash: DASHES[line.dash % DASHES.length] },
    hovertemplate: `%{y:.${figure.digits}f}${figure.unit ? ` ${figure.unit}` : ""}`,
  }));
}

/** The figure in words, and as a table if that is open. */
function tell(part, shown) {
  const { figure } = part;
  const title = figure.title(shown[0]?.tracks[0]?.measure);
  part.title.textContent = title;
  const each = shown.flatMap((line) => line.tracks.map((track) => ({ name: line.tracks.length > 1 ? `${line.label}, seed ${track.seed}` : line.label, track })));
  const ends = each.map(({ name, track }) => `${name} ${told(last(track[figure.key]), figure.digits, figure.unit)} after ${track.rounds} rounds`);
  part.plot.setAttribute("aria-label", `${title} by round: ${ends.join("; ") || "no line shown"}`);
  part.none.hidden = each.length === 0 || each.some(({ track }) => last(track[figure.key]) !== null);
  part.plot.hidden = part.table.hidden = !part.none.hidden;
  if (!part.table.open) return;
  const rounds = Math.max(0, ...each.map(({ track }) => track.rounds));
  const every = Math.max(1, Math.ceil(rounds / 20));
  const wanted = Array.from({ length: rounds }, (_, place) => place + 1).filter((round) => round === rounds || round % every === 0);
  show(part.values, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "round"), each.map(({ name }) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, wanted.map((round) => h("tr", {}, h("th", { scope: "row" }, String(round)), each.map(({ track }) => h("td", {}, told(track[figure.key][round - 1], figure.digits))))))));
}
