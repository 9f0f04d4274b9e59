// The cell from above: the access point in the middle, devices at their distances.

import { h, s, show, told } from "./dom.js";
import { dark } from "./figures.js";

const LIGHT = [[239, 243, 186], [127, 205, 187], [44, 127, 184], [37, 42, 120]];
const DARK = [[60, 60, 130], [44, 127, 184], [110, 205, 175], [250, 246, 170]];
const QUANTITIES = { energy_mj: ["Energy", 1, "mJ"], loss: ["Loss", 3, ""] };
const SIZE = 400;
const REACH = 176;
const TURN = Math.PI * (3 - Math.sqrt(5)); // the golden angle: no two devices of a row end up side by side
const MOST = 2000;

function shade(share) {
  const stops = dark() ? DARK : LIGHT;
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((part, index) => Math.round(part + (place - low) * (stops[low + 1][index] - part)));
}

const css = (parts) => `rgb(${parts.join(" ")})`;
const isLight = ([red, green, blue]) => 0.299 * red + 0.587 * green + 0.114 * blue > 140;

function ringStep(farthest) {
  const power = 10 ** Math.floor(Math.log10(farthest / 2));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => farthest / step <= 4.5) ?? power * 10;
}

export function cellMap(chosen) {
  const picture = s("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, class: "cell", role: "img" });
  const scale = h("div", { class: "scale" });
  const which = h("div", { class: "segments", role: "group", "aria-label": "Colour of the devices" });
  const caption = h("p", { class: "quiet" });
  const ranges = new Map(); // the colours of a scheme and seed mean the same in every round that was looked at
  let quantity = "energy_mj";
  let shown = null;
  let group = "";

  function draw() {
    show(which, Object.entries(QUANTITIES).map(([key, [title]]) => h("button", { "aria-pressed": String(key === quantity), onclick: () => { quantity = key; draw(); } }, title)));
    if (!shown) return;
    const [title, digits, unit] = QUANTITIES[quantity];
    const values = shown[quantity].map((value, device) => (shown.status[device] === "not in the round" ? null : value));
    const known = values.filter((value) => value !== null);
    const before = ranges.get(`${group} ${quantity}`) ?? [Infinity, -Infinity];
    const [low, high] = [Math.min(before[0], ...known), Math.max(before[1], ...known)];
    ranges.set(`${group} ${quantity}`, [low, high]);
    const farthest = Math.max(...shown.distance_m, 1e-9);
    const step = ringStep(farthest);
    const rings = Array.from({ length: Math.floor(farthest / step) }, (_, place) => (place + 1) * step);
    const middle = SIZE / 2;
    const radius = Math.max(4, Math.min(13, 60 / Math.sqrt(values.length)));
    const every = Math.ceil(values.length / MOST);
    show(picture,
      rings.map((metres) => [
        s("circle", { cx: middle, cy: middle, r: (REACH * metres) / farthest, class: "ring" }),
        s("text", { x: middle, y: middle - (REACH * metres) / farthest - 3, class: "ringlabel" }, `${metres} m`)]).flat(),
      s("circle", { cx: middle, cy: middle, r: 9, class: "point" }),
      s("path", { d: `M${middle - 3.6} ${middle + 4} L${middle} ${middle - 5} L${middle + 3.6} ${middle + 4} Z`, class: "mast" }),
      values.map((value, device) => (device % every ? null : dot(device, value, { low, high, farthest, radius, digits, unit, title, few: values.length <= 30 }))));
    const extent = `${told(Math.min(...shown.distance_m), 0)} to ${told(farthest, 0)} m`;
    const words = known.length ? `${title.toLowerCase()} from ${told(Math.min(...known), digits, unit)} to ${told(Math.max(...known), digits, unit)}` : `no ${title.toLowerCase()} known`;
    picture.setAttribute("aria-label", `Map of the cell in round ${shown.round}: ${values.length} devices, ${extent} from the access point; ${words}`);
    show(scale, known.length ? [h("span", {}, told(low, digits)), bar(), h("span", {}, told(high, digits, unit))] : null);
    caption.textContent = `Distances are the scenario's; directions are for the drawing alone.${every > 1 ? ` Every ${every}th of ${values.length} devices is drawn.` : ""} Hollow: not in the round, or no value.`;
  }

  function dot(device, value, how) {
    const far = (REACH * shown.distance_m[device]) / how.farthest;
    const [x, y] = [SIZE / 2 + far * Math.cos(device * TURN - 1.2), SIZE / 2 + far * Math.sin(device * TURN - 1.2)];
    const parts = value === null ? null : shade(how.high > how.low ? (value - how.low) / (how.high - how.low) : 0.5);
    const words = `Device ${device}, ${told(shown.distance_m[device], 0)} m: ${how.title.toLowerCase()} ${told(value, how.digits, how.unit)}, ${shown.status[device]}`;
    return s("g", { class: "device", "data-device": device, onclick: () => { mark(device); chosen(device); } }, s("title", {}, words),
      s("circle", { cx: x, cy: y, r: how.radius, class: value === null ? "hollow" : "filled", fill: parts ? css(parts) : "none" }),
      how.few && s("text", { x, y: y + 4, class: "number", fill: parts ? (isLight(parts) ? "#10233a" : "#ffffff") : "currentColor" }, String(device)));
  }

  function mark(device) {
    for (const each of picture.querySelectorAll(".device")) each.classList.toggle("chosen", Number(each.getAttribute("data-device")) === device);
  }

  return {
    element: h("figure", { class: "card map" }, h("figcaption", {}, h("h3", {}, "Map of the cell"), which), picture, scale, caption),
    draw(values, of) { shown = values; group = of; draw(); },
    choose: mark,
    repaint: draw,
  };
}

function bar() {
  const steps = Array.from({ length: 24 }, (_, place) => s("rect", { x: place * 10, y: 0, width: 10.5, height: 8, fill: css(shade(place / 23)) }));
  return s("svg", { viewBox: "0 0 240 8", class: "colours", "aria-hidden": "true", preserveAspectRatio: "none" }, steps);
}
