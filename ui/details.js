// details.js - all that is known of one claim, pod, lease or device, with links to the others: beside the
// page, or over it where there is no room. What the server has to say, explanations and logs, is asked for
// while it is open.

import { nameOf, Model } from "./model.js";
import { age, byId, clock, el, linkTo, placeOf, word } from "./page.js";
import { fetchJson, fetchText } from "./stream.js";

const LOG_LINES = 300;
const LOG_MS = 3000;
const EXPLAIN_MS = 5000;
const NODES_MAX = 20;
const DEVICES_MAX = 12; // of a request: groups of those of which the same is to be said
const ALIKE_MAX = 6; // that such a group names

const list = (pairs) => el("dl", {}, ...pairs.filter(([, value]) => value !== "" && value !== undefined)
  .flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, ...(Array.isArray(value) ? value : [value]))]));
const commas = (elements) => elements.flatMap((element, i) => (i ? [", ", element] : [element]));
const deviceLinks = (devices) => commas(devices.map(({ key, id }) => el("a", { href: placeOf("device", "", key), class: "id" }, id)));

/** Whether there is something to explain device by device: not of a pod that has its node, and no claims. */
function hasQuestion(kind, { spec, status }) {
  return kind === "claim" || !spec.nodeName || spec.resourceClaims?.length > 0 || status?.extendedResourceClaimStatus !== undefined;
}

/** "kind:namespace/name" of the address; null: nothing is shown. */
export function parsePlace(text) {
  const match = /^(pod|claim|lease|device):([^/]*)\/(.+)$/.exec(text ?? "");
  return match && { kind: match[1], space: match[2], name: match[3] };
}

export class Details {
  #place = null;
  #before = "";
  #timers = [];
  #abort = null;
  #container = ""; // whose log is shown
  #isAsking = false; // why it waits
  #parts = {
    claim: (place) => this.#claimParts(place), pod: (place) => this.#podParts(place),
    lease: (place) => this.#leaseParts(place), device: (place) => this.#deviceParts(place),
  };

  constructor(model, rows, token) {
    this.model = model;
    this.rows = rows;
    this.token = token;
    this.element = byId("details");
    this.title = el("h2");
    this.facts = el("div");
    this.explain = el("section", { class: "explain", hidden: true });
    this.log = el("section", { class: "log", hidden: true });
    this.more = el("div");
    const shut = el("a", { href: "#", class: "shut", "aria-label": "Close" }, "×");
    this.element.append(el("div", { class: "top" }, this.title, shut), this.facts, this.explain, this.log, this.more);
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#place && !event.target.matches("input, canvas")) location.hash = "#";
    });
  }

  /** Shows what the address names; null: nothing. */
  open(place) {
    this.#stop();
    this.#place = place;
    this.#before = "";
    this.element.hidden = !place;
    document.body.classList.toggle("beside", Boolean(place));
    this.explain.hidden = true;
    this.log.hidden = true;
    this.#isAsking = false;
    if (!place) return;
    this.element.scrollTop = 0;
    this.set();
    this.element.querySelector(".shut").focus({ preventScroll: true });
  }

  /** After new data. */
  set(groups = this.groups ?? []) {
    this.groups = groups;
    if (!this.#place) return;
    this.#ask(this.#place);
    const parts = this.#parts[this.#place.kind](this.#place);
    const now = JSON.stringify([parts.key, Math.floor(Date.now() / 10000)]);
    if (now === this.#before) return;
    this.#before = now;
    this.title.replaceChildren(el("span", { class: "kind" }, this.#place.kind), parts.title);
    this.facts.replaceChildren(...parts.facts);
    this.more.replaceChildren(...(parts.more ?? []));
  }

  #stop() {
    this.#abort?.abort();
    this.#abort = new AbortController();
    this.#timers.forEach(clearInterval);
    this.#timers = [];
  }

  /** As soon as there is somebody to ask about: a link may be opened before its pod is known, or has a log. */
  #ask(place) {
    const object = this.#object(place);
    if (!object) return;
    if (!this.#isAsking && hasQuestion(place.kind, object)) {
      this.#isAsking = true;
      this.#every(EXPLAIN_MS, () => this.#askWhy(place));
    }
    if (place.kind === "pod" && this.log.hidden) this.#startLog(place, object);
  }

  #every(ms, ask) {
    ask();
    this.#timers.push(setInterval(() => document.hidden || ask(), ms));
  }

  // ---- of each kind ----

  #events(kind, space, name) {
    const events = this.model.eventsAbout(kind, space, name).slice(0, 12);
    if (!events.length) return [];
    return [el("h3", {}, "Events"), list(events.map((event) => [age(Model.timeOf(event)),
      [el("span", { class: event.type === "Warning" ? "warn" : "" }, event.reason ?? ""), ` ${event.message ?? ""}`]]))];
  }

  static #missing(title) {
    return { key: "missing", title, facts: [el("p", { class: "faint" }, "It is not there, or no longer.")] };
  }

  #claimParts({ space, name }) {
    const row = this.rows.claims().find((one) => one.space === space && one.name === name);
    if (!row) return Details.#missing(nameOf(space, name));
    return {
      key: [row, this.model.events.size], title: nameOf(space, name),
      facts: [list([
        ["state", word(row.state)], ["why it waits", row.why],
        ["devices", row.devices.length ? deviceLinks(row.devices) : "none yet"],
        ["pods", row.pods.length ? commas(row.pods.map((pod) => linkTo("pod", space, pod, pod))) : "none"],
        ["since", row.since ? age(row.since) : ""],
      ])],
      more: this.#events("ResourceClaim", space, name),
    };
  }

  #podParts({ space, name }) {
    const row = this.rows.pods("").find((one) => one.space === space && one.name === name);
    if (!row) return Details.#missing(nameOf(space, name));
    const claims = this.rows.claims().filter((claim) => claim.space === space && claim.pods.includes(name)).map((claim) => claim.name);
    const devices = this.#devicesOf(space, name);
    return {
      key: [row, claims, devices.map((device) => device.state), this.model.events.size], title: nameOf(space, name),
      facts: [list([
        ["phase", word(row.phase)], ["on the node", row.state && word(row.state)],
        ["node", row.node && el("a", { href: `#node=${encodeURIComponent(row.node)}` }, row.node)], ["why it waits", row.why],
        ["claims", claims.length ? commas(claims.map((claim) => linkTo("claim", space, claim, claim))) : ""],
        ["devices", devices.length ? deviceLinks(devices) : "none"], ["age", age(row.since)],
      ])],
      more: this.#events("Pod", space, name),
    };
  }

  #leaseParts({ name }) {
    const row = this.rows.leases().find((one) => one.name === name);
    if (!row) return Details.#missing(name);
    return {
      key: row, title: name,
      facts: [list([
        ["state", word(row.state)], ["why it waits", row.why], ["user", row.user], ["command", el("code", {}, row.command || "none told")],
        ["devices", row.devices.length ? deviceLinks(row.devices) : "none yet"], ["since", age(row.since)],
        ["ends", row.ends ? clock(row.ends) : "with its command"],
      ])],
    };
  }

  #deviceParts({ name: key }) {
    const device = this.#devices().find((one) => one.key === key);
    if (!device) return Details.#missing(key);
    const history = this.model.history(key);
    return {
      key: [device, history.length], title: device.id,
      facts: [list([
        ["state", device.state], ["NUMA node", device.numa],
        ...device.holders.map((holder) => ["held by", this.#holderLinks(holder)]), ...device.facts,
      ])],
      more: [el("h3", {}, "Seen by this page"), history.length ? list(history.map(({ at, text }) => [clock(at), text]))
        : el("p", { class: "faint" }, "no change")],
    };
  }

  #holderLinks({ kind, space, name, pods, text }) {
    if (kind !== "claim") return [linkTo(kind, space, name, text)];
    return [linkTo(kind, space, name), ...(pods.length ? [" of ", ...commas(pods.map((pod) => linkTo("pod", space, pod, pod)))] : [])];
  }

  /** The pod or claim, if the API has it: a launcher may have brought it to the node without. */
  #object({ kind, space, name }) {
    const objects = { pod: this.model.pods, claim: this.model.claims }[kind] ?? new Map();
    return [...objects.values()].find(({ metadata }) => metadata.namespace === space && metadata.name === name);
  }

  #devices() {
    return this.groups.flatMap((group) => group.strips.flatMap((strip) => strip.devices));
  }

  #devicesOf(space, name) {
    return this.#devices().filter((device) => device.holders.some((holder) => holder.space === space &&
      (holder.kind === "pod" ? holder.name === name : holder.pods?.includes(name))));
  }

  // ---- why ----

  async #askWhy({ kind, space, name }) {
    const { signal } = this.#abort;
    try {
      const path = ["/davit/v1/explain", `${kind}s`, space, name].map((part, i) => (i ? encodeURIComponent(part) : part)).join("/");
      const told = await fetchJson(path, this.token(), signal);
      if (!signal.aborted) this.#tellWhy(told);
    } catch (error) {
      if (!signal.aborted) this.#say(this.explain, "Devices, one by one", error.message);
    }
  }

  #say(section, title, ...text) {
    section.hidden = false;
    section.replaceChildren(el("h3", {}, title), el("p", { class: "faint" }, ...text));
  }

  #tellWhy({ summary, nodes = [], obstacles = [] }) {
    const parts = [el("h3", {}, "Devices, one by one")];
    if (summary) parts.push(el("p", {}, summary));
    const isTold = !nodes.length && !obstacles.length && this.facts.textContent.includes(summary);
    for (const obstacle of obstacles) parts.push(el("p", { class: "warn" }, obstacle));
    for (const node of nodes.slice(0, NODES_MAX)) parts.push(this.#nodeReasons(node, node === nodes[0]));
    if (nodes.length > NODES_MAX) parts.push(el("p", { class: "faint" }, `and ${nodes.length - NODES_MAX} more nodes`));
    this.explain.hidden = isTold; // it is why it waits, a few lines above
    this.explain.replaceChildren(...parts);
  }

  #nodeReasons(node, isFirst) {
    const head = el("p", {}, el("b", {}, node.node), " ", word(node.fits ? "fits" : "no"), node.summary ? ` ${node.summary}` : "");
    const requests = isFirst || node.requests?.length === 1 ? node.requests ?? [] : [];
    return el("div", { class: "reasons" }, head, ...requests.map((request) => {
      const groups = Details.#alike(request.devices);
      const shown = groups.slice(0, DEVICES_MAX);
      const rest = groups.slice(DEVICES_MAX).reduce((sum, group) => sum + group.length, 0);
      return el("div", {}, ...shown.map((group) => el("div", { class: "reason" },
        el("div", {}, ...commas(group.slice(0, ALIKE_MAX).map(Details.#deviceLink)),
          group.length > ALIKE_MAX ? ` and ${group.length - ALIKE_MAX} more` : ""),
        el("span", { class: "kind" }, group[0].why), el("span", {}, group[0].detail))),
      rest > 0 ? el("p", { class: "faint" }, `and ${rest} more`) : "");
    }));
  }

  /** Devices that follow each other and of which the same is to be said. */
  static #alike(devices) {
    const groups = [];
    for (const device of devices) {
      const last = groups.at(-1);
      if (last && last[0].why === device.why && last[0].detail === device.detail) last.push(device);
      else groups.push([device]);
    }
    return groups;
  }

  static #deviceLink({ driver, pool, device }) {
    if (!device) return el("span", { class: "id" }, pool);
    return el("a", { href: placeOf("device", "", `${driver} ${pool} ${device}`), class: "id" }, device);
  }

  // ---- logs ----

  /** Of its first container that has one; of an init container as long as no other has. */
  #startLog({ space, name }, { spec, status }) {
    const containers = [...spec.containers, ...(spec.initContainers ?? [])].map((container) => container.name);
    const shown = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].find((one) => one.containerID);
    if (!shown) return;
    this.#container = shown.name;
    const tabs = containers.length < 2 ? [] : containers.map((container) => {
      const tab = el("button", { type: "button", "aria-pressed": String(container === shown.name) }, container);
      tab.addEventListener("click", () => {
        this.#container = container;
        tabs.forEach((one) => one.setAttribute("aria-pressed", String(one === tab)));
        this.#askLog(space, name);
      });
      return tab;
    });
    this.text = el("pre", { tabindex: "0" });
    this.log.replaceChildren(el("h3", {}, "Log", ...tabs), this.text);
    this.log.hidden = false;
    this.#every(LOG_MS, () => this.#askLog(space, name));
  }

  async #askLog(space, name) {
    const { signal } = this.#abort;
    const path = `/api/v1/namespaces/${encodeURIComponent(space)}/pods/${encodeURIComponent(name)}/log?` +
      new URLSearchParams({ container: this.#container, tailLines: LOG_LINES });
    let text;
    try {
      text = await fetchText(path, this.token(), signal) || "Nothing yet.";
    } catch (error) {
      text = error.message;
    }
    if (signal.aborted || text === this.text.textContent) return;
    const isAtEnd = this.text.scrollTop + this.text.clientHeight > this.text.scrollHeight - 24;
    this.text.textContent = text;
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
