// Several runs: their curves in the same figures, their latest values in one table, and what differs between them.

import { address, h, last, show, state, told } from "./dom.js";
import { colour, figures } from "./figures.js";
import { after, mean, schemes } from "./known_run.js";

export function compareView(names) {
  const table = h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Table of values" });
  const differences = h("div", {});
  const curves = figures();
  const runs = new Map();
  let drawn = "";

  function ordered() {
    return names.map((name) => runs.get(name)).filter(Boolean);
  }

  function lines() {
    const known = [...new Set(ordered().flatMap((run) => schemes(run).map(({ name }) => name)))];
    return ordered().flatMap((run) => schemes(run).filter(({ tracks }) => tracks.length).map(({ name, tracks }) => (
      { label: `${run.name}: ${name}`, run, scheme: name, colour: known.indexOf(name), dash: names.indexOf(run.name), tracks })));
  }

  function draw() {
    const shown = lines();
    show(table, h("table", {},
      h("thead", {}, h("tr", {}, ["Run", "Scheme"].map((title) => h("th", { scope: "col", class: "words" }, title)),
        ["Seeds", "Rounds", shown[0]?.tracks[0]?.measure === "test RMSE" ? "Test RMSE" : "Test accuracy", "Training loss"].map((title) => h("th", { scope: "col" }, title)),
        ["Energy", "Energy spread"].map((title) => h("th", { scope: "col" }, title, h("span", { class: "unit" }, "mJ"))))),
      h("tbody", {}, shown.map((line) => h("tr", {},
        h("th", { scope: "row", class: "words" }, h("a", { href: `#${address("/run", { run: line.run.name })}` }, line.run.name), " ", line.run.state === "done" ? null : state(line.run.state)),
        h("td", { class: "words" }, h("span", { class: "pair", colour: colour(line.colour) }, h("span", { class: "dot", "aria-hidden": "true" }), line.scheme)),
        h("td", {}, String(line.tracks.length)), h("td", {}, extent(line.tracks.map((track) => track.rounds))),
        h("td", {}, told(mean(line.tracks.map((track) => last(track.tested))), 3)), h("td", {}, told(mean(line.tracks.map((track) => last(track.loss))), 3)),
        h("td", {}, told(mean(line.tracks.map((track) => track.mean_energy_mj)), 1)), h("td", {}, told(mean(line.tracks.map((track) => track.energy_std_mj)), 2)))))));
    const unread = ordered().filter((run) => run.note).map((run) => h("p", { class: `notice ${run.state}` }, h("strong", {}, run.name), ": ", run.note));
    show(differences, unread, h("h2", {}, "What differs between them"), differing(ordered()));
    const now = JSON.stringify(shown.map((line) => [line.label, line.run.generation, ...line.tracks.map((track) => track.rounds)]));
    if (now !== drawn) { drawn = now; curves.draw(shown); }
  }

  return {
    element: h("section", {}, h("h1", {}, `Comparing ${names.length} runs`), h("p", { class: "quiet lead" }, "Colours are schemes; line styles are runs. Values are the latest, as means over seeds."), table, h("h2", {}, "Curves"), curves.element, differences),
    take(news) {
      for (const each of news.watched) runs.set(each.name, after(runs.get(each.name) ?? null, each));
      draw();
    },
    repaint() { draw(); curves.repaint(); },
    leave() { curves.leave(); },
  };
}

function extent(counts) {
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? String(most) : `${least} to ${most}`;
}

function differing(runs) {
  const asked = (run) => ({ ...run.scenario, schemes: schemes(run).map(({ name }) => name), rounds: run.rounds, seeds: [...new Set(run.tracks.map(({ seed }) => seed))] });
  const each = new Map(runs.map((run) => [run, asked(run)]));
  const keys = [...new Set([...each.values()].flatMap(Object.keys))];
  const text = (run, key) => (key in each.get(run) ? JSON.stringify(each.get(run)[key]).replace(/^"|"$/g, "") : "–");
  const found = keys.filter((key) => new Set(runs.map((run) => text(run, key))).size > 1).sort();
  if (!found.length) return h("p", { class: "quiet" }, "Nothing: these runs have the same scenario and the same order.");
  return h("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": "Differences" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "words" }, "Parameter"), runs.map((run) => h("th", { scope: "col", class: "words" }, run.name)))),
    h("tbody", {}, found.map((key) => h("tr", {}, h("th", { scope: "row", class: "words" }, h("code", {}, key)), runs.map((run) => h("td", { class: "words" }, text(run, key))))))));
}
