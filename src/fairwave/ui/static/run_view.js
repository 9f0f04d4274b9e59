// One run: how it stands, its curves, its devices, and where it comes from.

import { address, counted, h, last, progress, show, state, told } from "./dom.js";
import { colour, figures } from "./figures.js";
import { after, mean, schemes } from "./known_run.js";
import { devicesPanel } from "./devices_panel.js";

export function runView(name) {
  const head = h("div", { class: "head" });
  const notice = h("div", { role: "status" });
  const tiles = h("div", { class: "tiles" });
  const about = h("div", {});
  const curves = figures();
  const devices = devicesPanel(name);
  const body = h("div", { hidden: true }, tiles, h("h2", {}, "Curves"), curves.element, devices.element, about);
  let run = null;
  let drawn = "";

  function draw() {
    const command = last(run.sessions?.map(([, text]) => text) ?? []);
    show(head, h("div", { class: "title" }, h("h1", {}, run.name), state(run.state)),
      command && h("p", { class: "quiet command" }, h("code", {}, command)),
      h("div", { class: "actions" },
        run.report && h("a", { class: "button main", href: address("/report", { run: name }), target: "_blank", rel: "noopener" }, "Open the report"),
        run.progress.done > 0 && h("a", { class: "button", href: address("/results.csv", { run: name }), download: true }, "Results as CSV")));
    show(notice, advice(run));
    body.hidden = run.tracks.length === 0;
    show(tiles, tilesOf(run));
    const now = JSON.stringify(run.tracks.map((track) => [run.generation, track.scheme, track.seed, track.rounds]));
    if (now !== drawn) {
      drawn = now;
      curves.draw(lines(run));
      if (run.state !== "removed" && run.state !== "damaged") devices.take(run);
    }
    drawAbout();
  }

  function drawAbout() {
    const open = new Set([...about.querySelectorAll("details[open]")].map((part) => part.id));
    const facts = Object.entries(run.scenario).filter(([, value]) => value !== null && typeof value !== "object");
    show(about,
      h("details", { class: "card", id: "sessions", open: open.has("sessions") }, h("summary", {}, `How it came about: ${counted(run.sessions?.length ?? 0, "session")}`),
        h("ol", {}, (run.sessions ?? []).map(([begun, command]) => h("li", {}, h("time", { datetime: begun, class: "quiet" }, begun.replace("T", " ").replace("+00:00", " UTC")), " ", h("code", {}, command))))),
      h("details", { class: "card", id: "scenario", open: open.has("scenario") }, h("summary", {}, "Scenario"),
        h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, String(value)))))));
  }

  return {
    element: h("section", {}, head, notice, body),
    take(news) { run = after(run, news.watched[0]); draw(); },
    repaint() { if (run) { show(tiles, tilesOf(run)); curves.repaint(); devices.repaint(); } },
    leave() { curves.leave(); },
  };
}

export const lines = (run) => schemes(run).map(({ name, tracks }, place) => ({ label: name, colour: place, dash: 0, tracks })).filter((line) => line.tracks.length);

function advice(run) {
  const folder = run.folder ?? run.name;
  const ended = run.tracks.filter((track) => track.ended).map((track) => h("p", {}, `${track.scheme} with seed ${track.seed} ended after ${track.rounds} of ${run.rounds} rounds: ${track.ended}.`));
  const words = {
    removed: run.tracks.length ? ["This run was removed.", "What you see is what was known of it."] : ["There is no such run.", run.note],
    damaged: ["This run is damaged.", run.note],
    interrupted: run.note ? ["This run was interrupted.", run.note] : ["This run is interrupted: nothing writes to it.", null],
  }[run.state];
  if (!words) return ended.length ? h("div", { class: "notice" }, ended) : null;
  const goOn = run.state === "interrupted" && !run.federation;
  return h("div", { class: `notice ${run.state}` }, h("strong", {}, words[0]), words[1] && h("p", {}, words[1]),
    goOn && h("p", {}, "Go on with it in a terminal: ", h("code", {}, `fairwave resume ${folder}`)), ended);
}

function tilesOf(run) {
  const each = schemes(run).filter(({ tracks }) => tracks.length);
  const measure = each[0]?.tracks[0]?.measure ?? "test accuracy";
  const rows = (value) => each.map(({ name, tracks }, place) => h("div", { class: "pair", colour: colour(place) }, h("dt", {}, h("span", { class: "dot", "aria-hidden": "true" }), name), h("dd", {}, value(tracks))));
  const tile = (title, says, value) => h("div", { class: "tile card" }, h("h2", {}, title), h("dl", {}, rows(value)), h("p", { class: "quiet" }, says));
  const seeds = Math.max(0, ...each.map(({ tracks }) => tracks.length));
  const over = seeds > 1 ? `mean of ${seeds} seeds` : "one seed";
  return [
    h("div", { class: "tile card" }, h("h2", {}, "Progress"), h("p", { class: "big" }, run.progress.total ? `${Math.floor((100 * run.progress.done) / run.progress.total)}\u202f%` : "–"), progress(run)),
    tile(measure[0].toUpperCase() + measure.slice(1), `latest, ${over}`, (tracks) => told(mean(tracks.map((track) => last(track.tested))), 3)),
    tile("Energy", `mean per upload and device, ${over}`, (tracks) => told(mean(tracks.map((track) => track.mean_energy_mj)), 1, "mJ")),
    tile("Energy spread", `std across devices, ${over}`, (tracks) => told(mean(tracks.map((track) => track.energy_std_mj)), 2, "mJ")),
  ];
}
