// Every device in one round, sorted by any column.

import { h, show, told } from "./dom.js";

const MOST = 100;
const COLUMNS = [
  { key: "device", title: "Device", cell: (value) => String(value) },
  { key: "distance_m", title: "Distance", unit: "m", digits: 0 },
  { key: "energy_mj", title: "Energy", unit: "mJ", digits: 1 },
  { key: "iterations", title: "Iterations", digits: 0 },
  { key: "loss", title: "Loss", digits: 3 },
  { key: "deviation", title: "Deviation", digits: 3 },
  { key: "noise_std", title: "Noise", unit: "std", digits: 4 },
  { key: "status", title: "Update", words: true },
  { key: "findings", title: "Findings", words: true },
  { key: "faults", title: "Faults", words: true },
];

export function deviceTable(chosen) {
  const place = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of devices" });
  const more = h("button", { class: "button small", hidden: true, onclick: () => { all = true; draw(); } });
  let sorted = "device";
  let down = false;
  let all = false;
  let values = null;
  let marked = null;

  function rows() {
    const each = values.distance_m.map((_, device) => ({ device, ...Object.fromEntries(COLUMNS.slice(1).map(({ key }) => [key, values[key]?.[device] ?? null])) }));
    const order = (one, other) => {
      const [first, second] = [one[sorted], other[sorted]];
      if (first === null || second === null) return (first === null) - (second === null);
      return (first < second ? -1 : first > second ? 1 : one.device - other.device) * (down ? -1 : 1);
    };
    return each.sort(order);
  }

  function draw() {
    if (!values) return;
    const used = COLUMNS.filter(({ key, words }) => !words || key === "status" || values[key]?.some(Boolean));
    const found = rows();
    const shown = all ? found : found.slice(0, MOST);
    const focused = document.activeElement?.getAttribute("data-sort");
    show(place, h("table", {},
      h("caption", { class: "hidden" }, `Devices in round ${values.round}`),
      h("thead", {}, h("tr", {}, used.map(head))),
      h("tbody", {}, shown.map((row) => h("tr", { "data-device": row.device, class: row.device === marked ? "chosen" : null, onclick: () => { mark(row.device); chosen(row.device); } },
        used.map((column) => cell(column, row)))))));
    if (focused) place.querySelector(`[data-sort="${focused}"]`)?.focus();
    more.hidden = shown.length === found.length;
    more.textContent = `Show all ${found.length} devices`;
  }

  function head(column) {
    const here = column.key === sorted;
    const turn = () => { down = here ? !down : false; sorted = column.key; draw(); };
    return h("th", { scope: "col", class: column.words ? "words" : null, "aria-sort": here ? (down ? "descending" : "ascending") : "none" },
      h("button", { "data-sort": column.key, onclick: turn }, column.title, column.unit && h("span", { class: "unit" }, column.unit),
        h("span", { class: "arrow", "aria-hidden": "true" }, here ? (down ? "▾" : "▴") : "")));
  }

  function cell(column, row) {
    const value = row[column.key];
    if (column.key === "device") return h("th", { scope: "row" }, String(value), values.cheating.includes(value) && h("span", { class: "tag" }, "misbehaves"));
    if (column.key === "status") return h("td", { class: "words" }, h("span", { class: `became ${value.replaceAll(" ", "-")}` }, value));
    if (column.words) return h("td", { class: "words" }, value ?? "");
    return h("td", {}, told(value, column.digits));
  }

  function mark(device) {
    marked = device;
    for (const row of place.querySelectorAll("tbody tr")) row.classList.toggle("chosen", Number(row.dataset.device) === device);
  }

  return {
    element: h("div", { class: "card table" }, h("h3", {}, "Every device in this round"), place, more),
    draw(now) { values = now; draw(); },
    choose(device) {
      mark(device);
      place.querySelector("tr.chosen")?.scrollIntoView({ block: "nearest" });
    },
  };
}
