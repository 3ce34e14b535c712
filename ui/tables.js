// tables.js - claims, pods, events and plugins as tables.

import { Model } from "./model.js";
import { age, byId, el, named, tone } from "./page.js";

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

  set(rows, wanted, note = "") {
    const found = wanted ? rows.filter((row) => JSON.stringify(row).toLowerCase().includes(wanted)) : rows;
    const shown = found.slice(0, ROWS_MAX);
    const now = JSON.stringify([shown, found.length, rows.length, note, Math.floor(Date.now() / 10000)]);
    if (now === this.#before) return;
    this.#before = now;
    this.count.textContent = found.length === rows.length ? `${rows.length || ""}` : `${found.length} of ${rows.length}`;
    this.scroll.hidden = !found.length;
    this.more.hidden = found.length > 0 && found.length <= ROWS_MAX;
    if (found.length) this.more.textContent = `and ${found.length - ROWS_MAX} more`;
    else this.more.textContent = note || (rows.length ? "None fits the filter." : this.empty);
    this.body.replaceChildren(...shown.map((row) => el("tr", {}, ...this.cells(row).map((cell, i) => Table.#cell(cell, this.heads[i])))));
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

const word = (text) => text && el("span", { class: tone(text) || undefined }, text);
/** "a, b, c and 4 more" */
function several(names) {
  return names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ");
}

export class Tables {
  constructor(model) {
    this.model = model;
    this.claims = new Table("claims", ["Claim", "State", "Devices", "Pods", "Why it waits"], "No claims.", (row) => [
      ["cut", named(row.space, row.name)], ["tight", word(row.state)], ["id cut", several(row.devices)], ["cut", several(row.pods)],
      ["text", ...lines(row.why)],
    ]);
    this.pods = new Table("pods", ["Pod", "Phase", "On the node", "Age", "Note"], "No pods.", (row) => [
      ["cut", named(row.space, row.name)], ["tight", word(row.phase)], ["tight", word(row.state)], ["tight faint", age(row.since)],
      ["text", row.why],
    ]);
    this.events = new Table("events", ["When", "Reason", "Object", "Message"], "No events.", (row) => [
      ["tight faint", age(row.at)], ["", el("span", { class: row.type === "Warning" ? "warn" : undefined }, row.reason)],
      ["cut", row.object], ["text", row.message, row.count > 1 ? el("span", { class: "faint" }, ` ×${row.count}`) : ""],
    ]);
    this.plugins = new Table("plugins", ["Plugin", "Type", "State", "Note"], "No plugins.", (row) => [
      ["", row.name], ["tight faint", row.type], ["tight", word(row.state)], ["text", row.note],
    ]);
  }

  set(wanted, refusals) {
    const { model } = this;
    this.claims.set(model.claimRows(), wanted, refusals.claims);
    this.pods.set(model.podRows(), wanted, refusals.pods);
    this.events.set(model.sortedEvents().map((event) => ({
      at: Model.timeOf(event), type: event.type, reason: event.reason ?? "", message: event.message ?? "",
      object: `${event.involvedObject?.kind ?? ""} ${event.involvedObject?.name ?? ""}`,
      count: event.series?.count ?? event.count ?? 1,
    })), wanted, refusals.events);
    this.plugins.set((model.node.plugins ?? []).map((plugin) => {
      const isLost = plugin.type === "DRAPlugin" && plugin.state === "registered" && !plugin.connected;
      return {
        name: plugin.name || plugin.socket, type: plugin.type, state: plugin.state,
        note: plugin.error || [plugin.service, isLost && "not connected"].filter(Boolean).join(", "),
      };
    }), wanted);
  }
}

function lines(text) {
  return (text || "").split("\n").filter(Boolean).map((line) => el("div", {}, line));
}
