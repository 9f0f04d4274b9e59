// Elements without markup in strings: whatever a run's name holds stays text.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "colour") element.style.setProperty("--colour", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export const show = (place, ...children) => place.replaceChildren(...children.flat().filter(Boolean));

/** A number with so many digits behind the point; a dash where there is none. */
export function told(value, digits = 3, unit = "") {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 0.5 * 10 ** -digits || size >= 1e7) ? value.toExponential(1) : value.toFixed(digits);
  return unit ? `${text}\u202f${unit}` : text;
}

export function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

export const ago = (seconds) => (seconds < 60 ? "just now" : seconds < 172800 ? `${duration(seconds).replace(/ \d\d (s|min)$/, "")} ago` : `${Math.floor(seconds / 86400)} days ago`);

export const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

export const last = (values) => values.findLast((value) => value !== null) ?? null;

export const state = (word) => h("span", { class: `state ${word}` }, word);

/** Rounds done of those asked for, as a bar with words. */
export function progress(run) {
  const left = run.state === "running" ? (run.left_s === null ? "estimating the time left" : `about ${duration(run.left_s)} left`) : null;
  return h("div", { class: "progress" },
    h("progress", { max: Math.max(run.progress.total, 1), value: run.progress.done, "aria-label": `${run.progress.done} of ${run.progress.total} rounds` }),
    h("span", { class: "quiet" }, `${run.progress.done} of ${counted(run.progress.total, "round")}${left ? `, ${left}` : ""}`));
}

export const address = (path, pairs) => `${path}?${new URLSearchParams(pairs)}`;
