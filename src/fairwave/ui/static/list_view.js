// The list of runs: how each stands, how far it is, how accurate its first scheme has become.

import { address, ago, counted, h, progress, s, show, state, told } from "./dom.js";

const MANY = 8;

export function listView() {
  const chosen = new Set();
  const heading = h("p", { class: "quiet" }, "Looking for runs.");
  const rows = h("ul", { class: "runs" });
  const tray = h("div", { class: "tray", hidden: true, role: "region", "aria-label": "Chosen runs" });
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", hidden: true, oninput: () => draw() });
  let known = null;

  function tell() {
    tray.hidden = chosen.size === 0;
    const ready = chosen.size > 1;
    const where = `#${address("/compare", [...chosen].map((name) => ["run", name]))}`;
    show(tray,
      h("span", {}, ready ? `${chosen.size} runs chosen` : "Choose one more run to compare"),
      ready && h("a", { class: "button main", href: where }, `Compare ${chosen.size} runs`),
      h("button", { class: "button", onclick: () => { chosen.clear(); draw(); } }, "Clear"));
  }

  function row(run) {
    const box = h("input", {
      type: "checkbox", "aria-label": `Choose ${run.name} for a comparison`, checked: chosen.has(run.name),
      onchange: (event) => { event.target.checked ? chosen.add(run.name) : chosen.delete(run.name); tell(); },
    });
    const parts = run.schemes.length ? [run.schemes.join(", "), counted(run.seeds.length, "seed"), run.federation && "federation"] : [];
    const about = [...parts, ago(Date.now() / 1000 - run.changed)].filter(Boolean).join(" · ");
    return h("li", { class: `run ${run.state}` },
      h("label", { class: "choose" }, box),
      h("a", { class: "to", href: `#${address("/run", { run: run.name })}` },
        h("span", { class: "name" }, run.name), state(run.state),
        h("span", { class: "quiet about" }, about)),
      run.note ? h("p", { class: "note" }, run.note) : h("div", { class: "far" }, progress(run)),
      run.note ? null : h("div", { class: "spark" }, spark(run.spark),
        h("span", { class: "value" }, told(run.accuracy, 3), h("span", { class: "quiet" }, "accuracy"))));
  }

  function draw() {
    if (!known) return;
    const focused = document.activeElement?.getAttribute("aria-label");
    filter.hidden = known.runs.length <= MANY;
    for (const name of [...chosen]) if (!known.runs.some((run) => run.name === name)) chosen.delete(name);
    const running = known.runs.filter((run) => run.state === "running").length;
    show(heading, `${counted(known.runs.length, "run")} in `, h("code", {}, known.folder), running ? `, ${running} of them running` : "");
    const shown = known.runs.filter((run) => run.name.toLowerCase().includes(filter.value.toLowerCase()));
    show(rows, shown.map(row));
    if (known.runs.length === 0) show(rows, nothing(known));
    if (focused) [...rows.querySelectorAll("input")].find((box) => box.getAttribute("aria-label") === focused)?.focus();
    tell();
  }

  return {
    element: h("section", {}, h("div", { class: "title" }, h("h1", {}, "Runs"), filter), heading, rows, tray),
    take(news) { known = news; draw(); },
  };
}

function nothing(known) {
  const why = known.exists ? "There is no run in this folder yet." : "This folder does not exist yet.";
  return h("li", { class: "empty" },
    h("h2", {}, why),
    h("p", {}, "Start a run in a terminal; it appears here as soon as its first file is written."),
    h("pre", {}, h("code", {}, "fairwave run small")),
    h("p", { class: "quiet" }, "Runs are written to ./runs unless --out says otherwise. To look elsewhere, end this page with Ctrl-C and give it the folder:"),
    h("pre", {}, h("code", {}, "fairwave ui FOLDER")));
}

function spark(values) {
  const known = values.map((value, place) => [place, value]).filter(([, value]) => value !== null);
  const drawing = s("svg", { viewBox: "0 0 100 28", class: "sparkline", "aria-hidden": "true", preserveAspectRatio: "none" });
  if (known.length < 2) return drawing;
  const [low, high] = [Math.min(...known.map(([, value]) => value)), Math.max(...known.map(([, value]) => value))];
  const points = known.map(([place, value]) => `${(100 * place) / (values.length - 1)},${25 - (22 * (value - low)) / (high - low || 1)}`);
  drawing.append(s("polygon", { points: `0,28 ${points.join(" ")} 100,28` }), s("polyline", { points: points.join(" ") }));
  return drawing;
}
