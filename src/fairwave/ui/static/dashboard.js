// Which view is shown, and the one stream of news that it lives on.
//
// A tab holds one connection, and none while it is hidden: browsers allow six to a server, over all tabs.

import { h, show } from "./dom.js";
import { listView } from "./list_view.js";
import { compareView } from "./compare_view.js";
import { runView } from "./run_view.js";

const main = document.getElementById("main");
const link = document.getElementById("link");
let source = null;
let view = null;

function route() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const names = new URLSearchParams(query || "").getAll("run");
  if (path === "/run" && names.length === 1) return { names, view: runView(names[0]), crumb: names[0] };
  if (path === "/compare" && names.length > 1) return { names, view: compareView(names), crumb: "compare" };
  return { names: [], view: listView(), crumb: null };
}

function said(word, live) {
  link.textContent = word;
  link.classList.toggle("live", live);
}

function listen(names) {
  source?.close();
  source = null;
  if (document.hidden) return;
  const asked = new URLSearchParams(names.map((name) => ["run", name]));
  source = new EventSource(`/events?${asked}`);
  source.onopen = () => said("live", true);
  source.onmessage = (event) => {
    said("live", true);
    view.view.take(JSON.parse(event.data));
  };
  source.onerror = () => said(source.readyState === EventSource.CLOSED ? "refused: open the address that fairwave ui printed" : "not connected: is fairwave ui still running?", false);
}

function go() {
  view?.view.leave?.();
  view = route();
  document.title = view.crumb ? `${view.crumb} · fairwave` : "fairwave";
  const here = view.crumb ? [h("span", { "aria-hidden": "true" }, "/"), h("span", { class: "here" }, view.crumb)] : [];
  show(document.getElementById("crumbs"), h("a", { href: "#/" }, "Runs"), ...here);
  show(main, view.view.element);
  scrollTo(0, 0);
  listen(view.names);
}

addEventListener("hashchange", go);
document.addEventListener("visibilitychange", () => listen(view.names));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.view.repaint?.());
addEventListener("pagehide", () => source?.close());
go();
