// main.js - the page: its token, its sources of data, and when what is drawn.

import { MapView, drawSample, readColours } from "./map.js";
import { Model, STATES } from "./model.js";
import { age, byId, el } from "./page.js";
import { nodeSource, objectSource } from "./stream.js";
import { Tables } from "./tables.js";

const KEY = "davit-token";
const HIDDEN_MS = 20000; // how long a page that nobody sees keeps its connections

const model = new Model();
const map = new MapView(model);
const tables = new Tables(model);
const refusals = {};
let token = "";
let sources = [];
let isDrawing = false;
let nextDraw = 0; // on the page's clock

// ---- drawing ----

function drawHeader() {
  const { node } = model;
  const facts = [["davitd", node.version], ["up", age(node.started_at_ms)], ["resources", node.n_resources],
    ["pods", node.pods.length], ["plugins", node.plugins.length]];
  document.title = `${node.node_name} · davit`;
  byId("node").textContent = node.node_name;
  byId("about").replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
  byId("trouble").hidden = !node.state_error;
  byId("trouble").textContent = node.state_error ? `Nothing can be written now: ${node.state_error}` : "";
}

function drawLegend(groups) {
  byId("legend").replaceChildren(...STATES.map((state) => {
    const sample = el("canvas", { "aria-hidden": "true" });
    drawSample(sample, state);
    const n = groups.reduce((sum, group) => sum + group.counts[state], 0);
    return el("li", { "data-state": state }, sample, state, el("b", {}, String(n)));
  }));
}

function draw() {
  const start = performance.now();
  isDrawing = false;
  if (!model.node.node_name) return;
  const wanted = byId("filter").value.trim().toLowerCase();
  const groups = model.groups();
  byId("ask").hidden = true;
  byId("main").hidden = false;
  drawHeader();
  drawLegend(groups);
  map.set(groups, wanted);
  tables.set(wanted, refusals);
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

/** A kind of objects. Those that may not see all of them ask for those of this node, if that can be asked. */
function watchObjects(kind, path, fieldOfNode) {
  let isNarrow = false;
  const params = () => (isNarrow ? { fieldSelector: `${fieldOfNode}=${model.node.node_name}` } : {});
  const source = objectSource(path, params, () => token,
    (objects) => {
      model.setAll(kind, objects);
      later();
    },
    (type, object) => {
      model.change(kind, type, object);
      later();
    },
    (state, ms, error) => {
      if (state !== "refused") return;
      if (error.status === 403 && fieldOfNode && !isNarrow && model.node.node_name) {
        isNarrow = true;
        source.start();
      } else {
        refusals[kind] = "This token may not see them.";
        later();
      }
    });
  return source;
}

function start() {
  let isFirst = true;
  const objects = [
    watchObjects("slices", "/apis/resource.k8s.io/v1/resourceslices", "spec.nodeName"),
    watchObjects("claims", "/apis/resource.k8s.io/v1/resourceclaims"),
    watchObjects("pods", "/api/v1/pods", "spec.nodeName"),
    watchObjects("events", "/api/v1/events"),
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

function takeToken() {
  const fragment = new URLSearchParams(location.hash.slice(1)).get("token");
  if (fragment) {
    sessionStorage.setItem(KEY, fragment);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  byId("token").value = "";
  byId("ask-error").textContent = "";
  sessionStorage.setItem(KEY, token);
  start();
});
byId("filter").addEventListener("input", later);
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input") || byId("main").hidden) return;
  event.preventDefault();
  byId("filter").focus();
});
addEventListener("hashchange", () => {
  const fresh = takeToken();
  if (fresh && fresh !== token) {
    stop();
    model.clear();
    token = fresh;
    start();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  later();
});
document.addEventListener("visibilitychange", onVisibility);
setInterval(later, 10000); // ages

readColours();
token = takeToken();
if (token) start();
else askForToken("");
