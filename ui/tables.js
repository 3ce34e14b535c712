// tables.js - what waits, claims, pods, leases, events and plugins as tables.

import { Model } from "./model.js";
import { age, byId, command, el, linkTo, named, placeOf, several, word } from "./page.js";

const ROWS_MAX = 200;

/** A table in a section of the page, written anew only when something in it is another. */
class Table {
  #before = "";

  constructor(id, heads, empty, cells) {
    this.section = byId(id);
    this.heads = heads;
    this.empty = empty;
    this.cells = cells;
    this.count = el("small");
    this.body = el("tbody");
    this.more = el("p", { class: "empty", hidden: true });
    const head = el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col" }, text))));
    const label = this.section.firstElementChild.textContent;
    this.scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      el("table", {}, head, this.body));
    this.section.firstElementChild.append(this.count);
    this.section.append(this.scroll, this.more);
  }

  set(rows, wanted, note = "", hint = "") {
    const found = wanted ? rows.filter((row) => JSON.stringify(row).toLowerCase().includes(wanted)) : rows;
    const shown = found.slice(0, ROWS_MAX);
    const now = JSON.stringify([shown, found.length, rows.length, note, hint, Math.floor(Date.now() / 10000)]);
    if (now === this.#before) return;
    this.#before = now;
    this.count.textContent = found.length === rows.length ? `${rows.length || ""}` : `${found.length} of ${rows.length}`;
    this.scroll.hidden = !found.length;
    this.more.hidden = found.length > 0 && found.length <= ROWS_MAX;
    this.more.replaceChildren(...this.#moreText(found.length, rows.length, note, hint));
    this.body.replaceChildren(...shown.map((row) => el("tr", {}, ...this.cells(row).map((cell, i) => Table.#cell(cell, this.heads[i])))));
  }

  #moreText(nFound, nRows, note, hint) {
    if (nFound) return [`and ${nFound - ROWS_MAX} more`];
    if (note || nRows) return [note || "None fits the filter."];
    return hint ? [`${this.empty} `, command(hint)] : [this.empty];
  }

  /** An empty one is left out where rows are blocks. */
  static #cell([kind, ...children], head) {
    const there = children.filter((child) => child !== "");
    const content = there.length ? el("div", {}, ...there) : "";
    const cell = el("td", { class: kind || undefined, "data-head": head }, content);
    if (kind.includes("cut")) cell.title = cell.textContent; // it may be cut
    return cell;
  }
}

const link = (row) => linkTo(row.kind, row.space, row.name);
const deviceLinks = (devices) => several(devices.map(({ key, id }) => el("a", { href: placeOf("device", "", key), class: "id" }, id)));
const podLinks = (row) => several(row.pods.map((pod) => linkTo("pod", row.space, pod, pod)));
const leaseText = (row) => [linkTo("lease", "", row.name), ` ${row.command.split(" ")[0].split("/").pop()} of ${row.user}`];

function lines(text) {
  return (text || "").split("\n").filter(Boolean).map((line) => el("div", {}, line));
}

export class Tables {
  constructor(model, rows) {
    this.model = model;
    this.rows = rows;
    this.waiting = new Table("waiting", ["What", "Why it waits", "Since"], "", (row) => [
      ["what", el("span", { class: "kind" }, row.kind), ...(row.kind === "lease" ? leaseText(row) : [link(row)])],
      ["text", ...lines(row.why)], ["tight faint", age(row.since)],
    ]);
    this.claims = new Table("claims", ["Claim", "State", "Devices", "Pods"], "No claims. A claim asks for devices by what they are:", (row) => [
      ["cut", link(row)], ["tight", word(row.state)], ["cut", ...deviceLinks(row.devices)], ["cut", ...podLinks(row)],
    ]);
    this.pods = new Table("pods", ["Pod", "Phase", "On the node", "Age"], "No pods. A pod that wants devices:", (row) => [
      ["cut", link(row)], ["tight", word(row.phase)],
      ["tight", row.state ? word(row.state) : row.node && row.node !== this.model.node.node_name ? row.node : ""],
      ["tight faint", age(row.since)],
    ]);
    this.leases = new Table("leases", ["Lease", "State", "Devices", "Age"], "No leases. A command with a device of its own, until it ends:", (row) => [
      ["cut", ...leaseText(row)], ["tight", word(row.state)], ["cut", ...deviceLinks(row.devices)], ["tight faint", age(row.since)],
    ]);
    this.events = new Table("events", ["When", "Reason", "Object", "Message"], "No events.", (row) => [
      ["tight faint", age(row.at)], ["", el("span", { class: row.type === "Warning" ? "warn" : undefined }, row.reason)],
      ["cut", Tables.#objectOf(row)], ["text", row.message, row.count > 1 ? el("span", { class: "faint" }, ` ×${row.count}`) : ""],
    ]);
    this.plugins = new Table("plugins", ["Plugin", "Type", "State", "Note"], "No plugins. Those that try to register, and why they may not:", (row) => [
      ["cut", row.name], ["tight faint", row.type], ["tight", word(row.state)], ["text", row.note],
    ]);
  }

  static #objectOf({ about, space, object }) {
    const kinds = { ResourceClaim: "claim", Pod: "pod" };
    const text = el("span", {}, el("span", { class: "kind" }, kinds[about] ?? about), named("", object));
    return kinds[about] ? linkTo(kinds[about], space, object, text) : text;
  }

  /** Of a node; of all without a name. */
  set(nodeName, groups, wanted, refusals) {
    const { model, rows } = this;
    const waiting = rows.waiting(nodeName);
    const isOwn = !nodeName || nodeName === model.node.node_name;
    const here = nodeName && model.nodeNames().length > 1
      ? new Set(groups.flatMap((group) => group.strips.flatMap((strip) => strip.devices.map((device) => device.key)))) : null;
    const claims = rows.claims().filter((row) => !here || !row.devices.length || row.devices.some(({ key }) => here.has(key)));
    const resource = groups.find((group) => group.resource)?.resource ?? "example.com/gpu";
    byId("waiting").hidden = !waiting.length;
    this.waiting.set(waiting, wanted);
    this.claims.set(claims, wanted, refusals.claims, "davit apply -f claim.yaml");
    this.pods.set(rows.pods(nodeName), wanted, refusals.pods, "davit apply -f pod.yaml");
    byId("leases").hidden = !isOwn;
    this.leases.set(rows.leases(), wanted, "", `davit run ${resource}=1 -- COMMAND`);
    this.#setEvents(wanted, refusals);
    byId("plugins").hidden = !isOwn;
    this.#setPlugins(wanted);
  }

  #setEvents(wanted, refusals) {
    this.events.set(this.model.sortedEvents().map((event) => ({
      at: Model.timeOf(event), type: event.type, reason: event.reason ?? "", message: event.message ?? "",
      about: event.involvedObject?.kind ?? "", space: event.involvedObject?.namespace ?? "", object: event.involvedObject?.name ?? "",
      count: event.series?.count ?? event.count ?? 1,
    })), wanted, refusals.events);
  }

  #setPlugins(wanted) {
    this.plugins.set((this.model.node.plugins ?? []).map((plugin) => {
      const isLost = plugin.type === "DRAPlugin" && plugin.state === "registered" && !plugin.connected;
      return {
        name: plugin.name || plugin.socket, type: plugin.type, state: plugin.state,
        note: plugin.error || [plugin.service, isLost && "not connected"].filter(Boolean).join(", "),
      };
    }), wanted, "", "davit plugins");
  }
}
