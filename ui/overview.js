// overview.js - all nodes: a card each, with its devices as small tiles; and the switch between them.

import { drawSmall } from "./map.js";
import { countsOf, countsText } from "./model.js";
import { byId, el, word } from "./page.js";

const CARDS_MAX = 200;
const TILES_MAX = 1000; // of a node; more are told as a number
const WIDTH = 250;

export const ALL = "*";

function cardOf(name) {
  const card = {
    name, before: "", state: el("span"), counts: el("p", { class: "faint" }), map: el("canvas", { "aria-hidden": "true" }),
    trouble: el("p", { class: "bad" }),
  };
  card.element = el("a", { class: "node", href: `#node=${encodeURIComponent(name)}` },
    el("h2", {}, el("span", {}, name), card.state), card.map, card.counts, card.trouble);
  return card;
}

export class Overview {
  #cards = new Map();

  constructor(model) {
    this.model = model;
    this.element = byId("overview");
    this.more = el("p", { class: "empty" });
    this.select = byId("node-select");
    this.select.addEventListener("change", () => {
      location.hash = `#node=${encodeURIComponent(this.select.value)}`;
    });
  }

  /** The switch, which is there when there is something to choose. */
  setSwitch(shown) {
    const names = this.model.nodeNames();
    const now = JSON.stringify(names);
    byId("switch").hidden = names.length < 2;
    if (now !== this.before) {
      this.before = now;
      this.select.replaceChildren(el("option", { value: ALL }, `All ${names.length} nodes`),
        ...names.map((name) => el("option", { value: name }, name)));
    }
    this.select.value = shown;
  }

  /** All nodes; returns all their groups of devices. */
  set(wanted) {
    const kept = new Map();
    const all = [];
    let nFound = 0;
    for (const name of this.model.nodeNames()) {
      const groups = this.model.groups(name);
      all.push(...groups);
      if (wanted && !name.toLowerCase().includes(wanted)) continue;
      nFound++;
      if (kept.size >= CARDS_MAX) continue;
      const card = this.#cards.get(name) ?? cardOf(name);
      kept.set(name, card);
      this.#fill(card, groups.flatMap((group) => group.strips.flatMap((strip) => strip.devices)));
    }
    this.#cards = kept;
    const elements = [...kept.values()].map((card) => card.element);
    if (nFound > kept.size) {
      this.more.textContent = `and ${nFound - kept.size} more: the filter finds them by name, the switch above has all`;
      elements.push(this.more);
    }
    if (elements.length !== this.element.children.length || elements.some((e, i) => this.element.children[i] !== e)) {
      this.element.replaceChildren(...elements);
    }
    return all;
  }

  redraw() {
    for (const card of this.#cards.values()) card.before = "";
  }

  #fill(card, devices) {
    const trouble = this.model.nodeTrouble(card.name);
    const now = JSON.stringify([trouble, this.model.readiness(card.name), devices.map(({ use, fault }) => use[0] + fault[0])]);
    if (now === card.before) return;
    card.before = now;
    card.counts.textContent = countsText(countsOf(devices));
    card.state.replaceChildren(word(this.model.readiness(card.name)));
    card.trouble.textContent = trouble;
    card.trouble.hidden = !trouble;
    card.map.hidden = !devices.length;
    drawSmall(card.map, devices.slice(0, TILES_MAX), WIDTH);
  }
}
