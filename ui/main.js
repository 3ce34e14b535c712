// main.js - the page: its token, its sources of data, and when what is drawn.

import { Details, parsePlace } from "./details.js";
import { MapView, drawSample, readColours } from "./map.js";
import { BAD, FAULTS, Model, USES } from "./model.js";
import { ALL, Overview } from "./overview.js";
import { age, byId, el } from "./page.js";
import { Rows } from "./rows.js";
import { exchange, nodeSource, objectSource, pollSource } from "./stream.js";
import { Tables } from "./tables.js";

const KEY = "davit-token";
const HIDDEN_MS = 20000; // how long a page that nobody sees keeps its connections
const POLL_MS = 10000; // how often what changes seldom is asked for

const model = new Model();
const rows = new Rows(model);
const map = new MapView(model);
const overview = new Overview(model);
const tables = new Tables(model, rows);
const details = new Details(model, rows, () => token);
const refusals = {};
let token = "";
let chosen = ""; // the node that the address names; "": none does
let sources = [];
let isDrawing = false;
let nextDraw = 0; // on the page's clock

// ---- drawing ----

/** The node that is shown, or ALL, which a fleet begins with. */
function shownNode() {
  const names = model.nodeNames();
  if (names.length < 2) return names[0];
  return chosen === ALL || !names.includes(chosen) ? ALL : chosen;
}

function drawHeader(shown) {
  const { node } = model;
  const isOwn = shown === node.node_name;
  const facts = isOwn ? [["davitd", node.version], ["up", age(node.started_at_ms)], ["resources", model.countResources()],
    ["pods", model.nodePods().length], ["plugins", node.plugins.length]] : [["davitd", node.version], ["on", node.node_name]];
  const title = shown === ALL ? "All nodes" : shown;
  document.title = `${title} · davit`;
  byId("node").textContent = title;
  byId("about").replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
  const trouble = node.state_error ? `Nothing can be written now: ${node.state_error}`
    : shown !== ALL && model.nodeTrouble(shown) && `${shown}: ${model.nodeTrouble(shown)}`;
  byId("trouble").hidden = !trouble;
  byId("trouble").textContent = trouble || "";
}

function drawLegend(groups) {
  byId("legend").replaceChildren(...[...USES, BAD, ...FAULTS].map((state) => {
    const sample = el("canvas", { "aria-hidden": "true" });
    drawSample(sample, state);
    const n = groups.reduce((sum, group) => sum + group.counts[state], 0);
    const text = state === BAD ? "held, not well" : state;
    const isRare = state === "blocked" && !n; // few nodes have devices that share something
    return isRare ? "" : el("li", { "data-state": state, class: n ? undefined : "none" }, sample, text, el("b", {}, String(n)));
  }));
}

function draw() {
  const start = performance.now();
  isDrawing = false;
  if (!model.node.node_name) return;
  const wanted = byId("filter").value.trim().toLowerCase();
  const shown = shownNode();
  const isAll = shown === ALL;
  byId("ask").hidden = true;
  byId("main").hidden = false;
  byId("overview").hidden = !isAll;
  byId("devices").hidden = isAll;
  const groups = isAll ? overview.set(wanted) : model.groups(shown);
  drawHeader(shown);
  overview.setSwitch(shown);
  drawLegend(groups);
  if (!isAll) map.set(groups, wanted);
  tables.set(isAll ? "" : shown, groups, wanted, refusals);
  details.set(groups);
  nextDraw = performance.now() + Math.max(50, 3 * (performance.now() - start)); // the rest is the user's
}

/** However much arrives. A page that is not seen draws too, so that it is right when it is. */
function later() {
  if (isDrawing) return;
  isDrawing = true;
  setTimeout(() => (document.hidden ? draw() : requestAnimationFrame(draw)), Math.max(0, nextDraw - performance.now()));
}

// ---- data ----

function setLink(state, text) {
  byId("link").dataset.state = state;
  byId("link").textContent = text;
}

function askForToken(message) {
  stop();
  sessionStorage.removeItem(KEY);
  token = "";
  model.clear();
  Object.keys(refusals).forEach((kind) => delete refusals[kind]);
  byId("main").hidden = true;
  byId("ask").hidden = false;
  byId("ask-error").textContent = message;
  byId("token").focus();
  setLink("off", "not connected");
}

function onLink(state, ms, error) {
  if (state === "live") setLink("live", "live");
  else if (state === "waiting") setLink("waiting", `connection lost; next try in ${Math.max(1, Math.round(ms / 1000))} s`);
  else if (error.status === 401) askForToken("This token is not, or no longer, good.");
  else askForToken(error.message);
}

/**
 * A kind of objects. Those that may not see all of them ask for those of this node, if that can be asked;
 * those that may see none are told so, where the kind has a place to say it.
 */
function watchObjects(kind, path, fieldOfNode, isPolled = false) {
  let isNarrow = false;
  const params = () => (isNarrow ? { fieldSelector: `${fieldOfNode}=${model.node.node_name}` } : {});
  const onlist = (objects) => {
    model.setAll(kind, objects);
    later();
  };
  const onchange = (type, object) => {
    model.change(kind, type, object);
    later();
  };
  const told = (state, ms, error) => {
    if (state !== "refused") return;
    if (error.status === 403 && fieldOfNode && !isNarrow && model.node.node_name) {
      isNarrow = true;
      source.start();
    } else {
      refusals[kind] = "This token may not see them.";
      later();
    }
  };
  const source = isPolled ? pollSource(path, params, () => token, POLL_MS, onlist, told)
    : objectSource(path, params, () => token, onlist, onchange, told);
  return source;
}

function start() {
  let isFirst = true;
  const resource = "/apis/resource.k8s.io";
  const objects = [
    watchObjects("slices", `${resource}/v1/resourceslices`, "spec.nodeName"),
    watchObjects("claims", `${resource}/v1/resourceclaims`),
    watchObjects("pods", "/api/v1/pods", "spec.nodeName"),
    watchObjects("events", "/api/v1/events"),
    watchObjects("nodes", "/api/v1/nodes", "metadata.name", true),
    watchObjects("rules", `${resource}/v1beta2/devicetaintrules`, "", true),
  ];
  const node = nodeSource(() => token, (doc) => {
    model.setNode(doc);
    later();
    if (isFirst) objects.forEach((source) => source.start()); // they want to know which node
    isFirst = false;
  }, onLink);
  sources = [node, ...objects];
  setLink("waiting", "connecting");
  node.start();
}

function stop() {
  sources.forEach((source) => source.stop());
  sources = [];
}

/** Over HTTP/1.1 a browser has six connections for all tabs of a server: who is not seen gives his
 * back. */
function onVisibility() {
  clearTimeout(onVisibility.timer);
  if (document.hidden) {
    onVisibility.timer = setTimeout(() => {
      stop();
      setLink("off", "resting");
    }, HIDDEN_MS);
  } else if (!sources.length && token) {
    start();
  }
}

// ---- the start ----

/** What the address says: a token or a link once, the node that is meant, what is to be shown of it. */
function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (words.get("token") || words.get("link")) history.replaceState(null, "", location.pathname + location.search);
  if (words.has("node")) chosen = words.get("node");
  details.open(parsePlace(words.get("show")));
  return { token: words.get("token"), link: words.get("link"), id: words.get("id") };
}

function signIn(fresh) {
  stop();
  model.clear();
  token = fresh;
  sessionStorage.setItem(KEY, token);
  start();
}

async function follow({ token: fresh, link, id }) {
  if (link) {
    try {
      signIn(await exchange(link, id));
    } catch (error) {
      askForToken(error.message);
    }
  } else if (fresh && fresh !== token) {
    signIn(fresh);
  }
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = byId("token").value.trim();
  byId("token").value = "";
  byId("ask-error").textContent = "";
  signIn(given);
});
byId("filter").addEventListener("input", later);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input") || byId("main").hidden) return;
  event.preventDefault();
  byId("filter").focus();
});
addEventListener("hashchange", () => {
  follow(readAddress());
  later();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  overview.redraw();
  later();
});
document.addEventListener("visibilitychange", onVisibility);
setInterval(later, 10000); // ages

readColours();
const address = readAddress();
token = sessionStorage.getItem(KEY) ?? "";
if (address.token || address.link) follow(address);
else if (token) start();
else askForToken("");
