// map.js - the devices as tiles: a canvas for each NUMA node of a resource or pool, so that ten
// thousand of them cost one drawing.

import { BAD, FAULTS, USES, countsText } from "./model.js";
import { byId, clock, command, el, placeOf } from "./page.js";
import { spark } from "./spark.js";

const GAP = 2;
const LARGE = 150; // devices from which on a group has the whole width
const SIZES = [[48, 20], [400, 15], [2500, 11], [Infinity, 8]];

let colours = {};

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = [...USES, ...FAULTS, "accent", "sheet"];
  colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function cross(context, x, y, size) {
  context.strokeStyle = colours.sheet;
  context.lineWidth = size > 10 ? 2 : 1;
  context.beginPath();
  context.moveTo(x + size * 0.25, y + size * 0.25);
  context.lineTo(x + size * 0.75, y + size * 0.75);
  context.moveTo(x + size * 0.75, y + size * 0.25);
  context.lineTo(x + size * 0.25, y + size * 0.75);
  context.stroke();
}

function corner(context, x, y, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x + size * 0.35, y);
  context.lineTo(x + size, y);
  context.lineTo(x + size, y + size * 0.65);
  context.fill();
}

function frame(context, x, y, size, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
}

/**
 * Fill is what a device is used for, and what is drawn over it what is wrong with it: states differ in
 * shape as well as in colour. What is gone and held is a held tile within the outline of one that is gone.
 */
export function drawTile(context, { use, fault }, x, y, size) {
  if (fault === "gone") {
    frame(context, x, y, size, colours.gone);
    const inset = Math.max(2, Math.round(size / 5));
    context.fillStyle = colours[use];
    if (use !== "free") context.fillRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
    return;
  }
  if (fault === "blocked" && use === "free") {
    frame(context, x, y, size, colours.blocked);
    context.fillStyle = colours.blocked;
    context.fillRect(x, y + Math.round(size * 0.4), size, Math.max(2, Math.round(size * 0.2)));
    return;
  }
  context.fillStyle = use === "free" && fault ? colours[fault] : colours[use];
  context.fillRect(x, y, size, size);
  if (fault === "unhealthy") {
    if (use !== "free") corner(context, x, y, size, colours.unhealthy);
    cross(context, x, y, size);
  } else if (fault === "tainted") {
    corner(context, x, y, size, use === "free" ? colours.sheet : colours.tainted);
  } else if (use === "preparing") {
    const dot = Math.max(2, Math.round(size / 3));
    context.fillStyle = colours.sheet;
    context.fillRect(x + (size - dot) / 2, y + (size - dot) / 2, dot, dot);
  }
}

function scaled(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

export function drawSample(canvas, state) {
  const device = state === BAD ? { use: "held", fault: "unhealthy" }
    : USES.includes(state) ? { use: state, fault: "" } : { use: "free", fault: state };
  drawTile(scaled(canvas, 14, 14), device, 0, 0, 14);
}

/** Devices as tiles that nobody points at: of a node among others. */
export function drawSmall(canvas, devices, width) {
  const size = devices.length > 200 ? 5 : 9;
  const step = size + 1;
  const columns = Math.max(1, Math.min(devices.length, Math.floor(width / step)));
  const context = scaled(canvas, columns * step, Math.ceil(devices.length / columns) * step);
  devices.forEach((device, i) => drawTile(context, device, (i % columns) * step, Math.floor(i / columns) * step, size));
}

/** The devices of one NUMA node. */
class Strip {
  devices = [];
  at = -1; // the one that has the keyboard
  #columns = 1;

  constructor(map) {
    this.map = map;
    this.label = el("span");
    this.canvas = el("canvas", { tabindex: "0", role: "group" });
    this.element = el("div", { class: "strip" }, this.label, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.#point(event));
    this.canvas.addEventListener("click", (event) => this.#open(this.#at(event)));
    this.canvas.addEventListener("pointerleave", () => this.map.hide(this));
    this.canvas.addEventListener("keydown", (event) => this.#press(event));
    this.canvas.addEventListener("focus", () => {
      if (this.canvas.matches(":focus-visible")) this.#focus(Math.max(0, this.at));
    });
    this.canvas.addEventListener("blur", () => this.#focus(-1));
  }

  set(label, devices, size, title) {
    this.label.textContent = label;
    this.devices = devices;
    this.size = size;
    this.at = Math.min(this.at, devices.length - 1);
    this.canvas.setAttribute("aria-label", `${title} ${label}: ${devices.length} devices; arrow keys go through them`);
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth - (this.canvas.offsetLeft - this.element.offsetLeft);
    const step = this.size + GAP;
    if (width <= 0) return;
    this.#columns = Math.max(1, Math.min(this.devices.length, Math.floor((width + GAP) / step)));
    const rows = Math.ceil(this.devices.length / this.#columns);
    const context = scaled(this.canvas, this.#columns * step - GAP + 1, rows * step - GAP + 1);
    this.devices.forEach((device, i) => {
      context.globalAlpha = this.map.isWanted(device) ? 1 : 0.16;
      drawTile(context, device, (i % this.#columns) * step, Math.floor(i / this.#columns) * step, this.size);
    });
    context.globalAlpha = 1;
    if (this.at >= 0) {
      const { x, y } = this.#place(this.at);
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.strokeRect(x, y, this.size, this.size);
    }
  }

  #place(i) {
    const step = this.size + GAP;
    return { x: (i % this.#columns) * step, y: Math.floor(i / this.#columns) * step };
  }

  /** Where a device is on the screen. */
  box(i) {
    const box = this.canvas.getBoundingClientRect();
    const { x, y } = this.#place(i);
    return { left: box.left + x, top: box.top + y, size: this.size };
  }

  /** Which device an event is at; -1: none. */
  #at(event) {
    const step = this.size + GAP;
    const column = Math.floor(event.offsetX / step);
    const i = Math.floor(event.offsetY / step) * this.#columns + column;
    return column >= 0 && column < this.#columns && i >= 0 && i < this.devices.length ? i : -1;
  }

  #point(event) {
    const i = this.#at(event);
    if (i >= 0) this.map.show(this, i);
    else this.map.hide(this);
  }

  #open(i) {
    if (i < 0) return;
    this.map.hide(this);
    location.hash = placeOf("device", "", this.devices[i].key);
  }

  #focus(i) {
    this.at = i;
    this.draw();
    if (i < 0) this.map.hide(this);
    else this.map.show(this, i, true);
  }

  #press(event) {
    const moves = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns,
      Home: -this.at, End: this.devices.length - 1 - this.at,
    };
    if (event.key === "Escape") {
      this.map.hide(this);
    } else if (event.key === "Enter") {
      this.#open(this.at);
    } else if (event.key in moves) {
      const to = this.at + moves[event.key];
      event.preventDefault();
      if (to >= 0 && to < this.devices.length) this.#focus(to);
    }
  }
}

/** What to do when there is nothing to see. */
function nothing() {
  return el("div", { class: "blank" },
    el("p", {}, "No devices yet: no plugin has listed any, and no driver has published a slice."),
    el("dl", {},
      el("dt", {}, "Serial ports, cameras, GPUs with a CDI spec: no driver is needed"),
      el("dd", {}, command("davitd --offer 'serial=/dev/ttyUSB*'")),
      el("dt", {}, "A device plugin or a driver: start it; if it does not come, this says why"),
      el("dd", {}, command("davit plugins")),
      el("dt", {}, "Nothing at hand: four devices that are only names"),
      el("dd", {}, command("davit-sample-device-plugin --resource example.com/gpu --virtual 4"))));
}

export class MapView {
  #groups = new Map();
  #shown = null; // {strip, key}
  #wanted = "";

  constructor(model) {
    this.model = model;
    this.element = byId("devices");
    this.card = byId("card");
    new ResizeObserver(() => this.redraw()).observe(this.element);
    addEventListener("scroll", () => this.hide(), { passive: true });
  }

  isWanted(device) {
    return !this.#wanted || device.text.includes(this.#wanted);
  }

  redraw() {
    for (const group of this.#groups.values()) for (const strip of group.strips) strip.draw();
  }

  /** Shows the groups; those whose state is as before keep their elements. */
  set(groups, wanted) {
    const kept = new Map();
    this.#wanted = wanted;
    for (const group of groups) {
      const view = this.#groups.get(group.key) ?? this.#make();
      kept.set(group.key, view);
      this.#fill(view, group);
    }
    this.#groups = kept;
    const elements = [...kept.values()].map((view) => view.element);
    if (!elements.length) elements.push(nothing());
    if (elements.length !== this.element.children.length || elements.some((e, i) => this.element.children[i] !== e)) {
      this.element.replaceChildren(...elements);
    }
    for (const group of groups) this.#drawGroup(kept.get(group.key), group);
    this.#showAgain();
  }

  #make() {
    const view = { strips: [], title: el("span"), note: el("small"), counts: el("small"), past: el("div", { class: "past" }) };
    view.body = el("div");
    view.element = el("article", { class: "group" },
      el("div", { class: "head" }, el("h2", {}, view.title, view.counts, view.note), view.past), view.body);
    return view;
  }

  #drawPast(view, group) {
    const now = JSON.stringify([group.past, group.n]);
    if (view.pastNow === now) return;
    view.pastNow = now;
    view.past.replaceChildren(...[group.past && spark(group.past, group.n)].filter(Boolean));
  }

  #fill(view, group) {
    view.title.textContent = group.title;
    view.note.textContent = group.note;
    view.note.className = group.isBad ? "bad" : "";
    view.counts.textContent = countsText(group.counts);
    this.#drawPast(view, group);
    view.element.classList.toggle("large", group.n > LARGE);
    view.element.classList.toggle("bare", group.strips.every((strip) => !strip.label));
    while (view.strips.length < group.strips.length) view.strips.push(new Strip(this));
    view.strips.length = group.strips.length;
    const elements = view.strips.map((strip) => strip.element);
    if (elements.length !== view.body.children.length || elements.some((e, i) => view.body.children[i] !== e)) {
      view.body.replaceChildren(...elements);
    }
  }

  #drawGroup(view, group) {
    const size = SIZES.find(([n]) => group.n <= n)[1];
    group.strips.forEach((strip, i) => {
      for (const device of strip.devices) {
        if (!this.#wanted) continue;
        device.text = `${group.title} ${device.id} ${device.state} ${device.names}`.toLowerCase();
      }
      view.strips[i].set(strip.label, strip.devices, size, group.title);
    });
  }

  // ---- the card ----

  show(strip, i, isSpoken = false) {
    const device = strip.devices[i];
    if (this.#shown?.strip === strip && this.#shown.device === device) return;
    this.#shown = { strip, device, key: device.key };
    this.#fillCard(device);
    this.card.hidden = false;
    this.#put(strip.box(i));
    if (isSpoken) byId("spoken").textContent = [device.id, device.state, device.names].filter(Boolean).join(", ");
  }

  hide(strip) {
    if (strip && this.#shown?.strip !== strip) return;
    this.#shown = null;
    this.card.hidden = true;
  }

  /** After new data the card tells of the same device, if it is still there. */
  #showAgain() {
    if (!this.#shown) return;
    const { strip, key } = this.#shown;
    const i = strip.devices.findIndex((device) => device.key === key);
    this.#shown = null;
    if (i < 0) this.hide();
    else this.show(strip, i);
  }

  #fillCard(device) {
    const rows = [["state", device.state]];
    if (device.numa !== "") rows.push(["NUMA node", device.numa]);
    for (const holder of device.holders) rows.push(["held by", holder.text]);
    const pair = ([name, value]) => [el("dt", {}, name), el("dd", {}, value)];
    const list = (pairs) => el("dl", {}, ...pairs.flatMap(pair));
    const history = this.model.history(device.key);
    this.card.replaceChildren(el("h3", {}, device.id), list(rows));
    if (device.facts.length) this.card.append(el("h4", {}, "Attributes"), list(device.facts.slice(0, 14)));
    this.card.append(el("h4", {}, "Seen by this page"), history.length
      ? list(history.map(({ at, text }) => [clock(at), text]))
      : el("span", { class: "faint" }, "no change"), el("p", { class: "faint" }, "click, or press Enter, for more"));
  }

  #put({ left, top, size }) {
    const { offsetWidth: width, offsetHeight: height } = this.card;
    const x = Math.max(8, Math.min(left, innerWidth - width - 8));
    const below = top + size + 6;
    const y = below + height > innerHeight - 8 && top - height - 6 > 0 ? top - height - 6 : below;
    this.card.style.left = `${x}px`;
    this.card.style.top = `${y}px`;
  }
}
