// The devices in one round: a slider over the rounds, the map of the cell, and a table.

import { address, h, show } from "./dom.js";
import { cellMap } from "./cell_map.js";
import { deviceTable } from "./device_table.js";

const MOST_KEPT = 200000; // devices, over all rounds that were looked at

export function devicesPanel(name) {
  const scheme = h("select", { id: "scheme", onchange: () => ask() });
  const seed = h("select", { id: "seed", onchange: () => ask() });
  const slider = h("input", { type: "range", id: "round", min: 1, max: 1, value: 1, step: 1, oninput: () => { following = Number(slider.value) === Number(slider.max); ask(); } });
  const where = h("output", { for: "round" });
  const follow = h("button", { class: "button small", "aria-pressed": "true", onclick: () => { following = !following; if (following) slider.value = slider.max; ask(); } }, "Follow the latest");
  const kept = new Map();
  const map = cellMap((device) => table.choose(device));
  const table = deviceTable((device) => map.choose(device));
  let run = null;
  let following = true;
  let asked = "";
  let asking = false;

  function track() {
    return run.tracks.find((each) => each.scheme === scheme.value && String(each.seed) === seed.value);
  }

  function options(select, values) {
    const before = select.value;
    if ([...select.options].map((option) => option.value).join() !== values.join()) show(select, values.map((value) => h("option", { value }, value)));
    if (values.includes(before)) select.value = before;
  }

  async function ask() {
    const current = track();
    element.hidden = !current || current.rounds === 0;
    if (element.hidden) return;
    slider.max = String(current.rounds);
    if (following || Number(slider.value) > current.rounds) slider.value = slider.max;
    where.textContent = `${slider.value} of ${current.rounds}`;
    slider.setAttribute("aria-valuetext", `round ${where.textContent}`);
    follow.setAttribute("aria-pressed", String(following));
    asked = address("/api/devices", { run: name, scheme: scheme.value, seed: seed.value, round: slider.value });
    if (asking) return;
    asking = true;
    try {
      for (let wanted = null; wanted !== asked;) {
        wanted = asked;
        const mark = `${run.generation} ${wanted}`;
        if (!kept.has(mark)) {
          const answer = await fetch(wanted);
          if (!answer.ok) return;
          const values = await answer.json();
          if (kept.size * values.status.length > MOST_KEPT) kept.clear();
          kept.set(mark, values);
        }
        if (wanted === asked) draw(kept.get(mark), mark.replace(/&round=.*/, ""));
      }
    } catch {
      // The server is gone or starting again: the stream says so, and the next news asks anew.
    } finally {
      asking = false;
    }
  }

  function draw(values, group) {
    map.draw(values, group);
    table.draw(values);
  }

  const element = h("section", { hidden: true, "aria-label": "Devices" },
    h("h2", {}, "Devices"),
    h("div", { class: "controls card" },
      h("label", {}, "Scheme", scheme), h("label", {}, "Seed", seed),
      h("label", { class: "wide" }, h("span", {}, "Round ", where), slider), follow),
    h("div", { class: "devices" }, map.element, table.element));

  return {
    element,
    take(now) {
      run = now;
      const begun = run.tracks.filter((each) => each.rounds);
      options(scheme, [...new Set(begun.map((each) => each.scheme))]);
      options(seed, [...new Set(begun.filter((each) => each.scheme === scheme.value).map((each) => String(each.seed)))]);
      ask();
    },
    repaint() { map.repaint(); },
  };
}
