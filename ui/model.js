// model.js - what is known, put together from the node's own documents and from the API: which devices
// there are, on which node, how they are and who has them. No page here: it could be shown by anything.

import { Counters } from "./counters.js";
import { Histories } from "./history.js";

/** What a device is used for, and what is wrong with it: one of each, or nothing wrong. */
export const USES = ["free", "held", "preparing"];
export const FAULTS = ["blocked", "tainted", "unhealthy", "gone"];
/** Held, and something is wrong with it. */
export const BAD = "bad";

const EVENTS_MAX = 1000;
const KINDS = ["slices", "claims", "pods", "events", "nodes", "rules"];
/** Taints that keep claims away; one with another effect only tells. */
const KEEPS_AWAY = /^No(Schedule|Execute)$/;

export const { compare } = new Intl.Collator(undefined, { numeric: true }); // gpu-2 before gpu-10

const keyOf = (object) => object.metadata.uid;
export const nameOf = (space, name) => (space ? `${space}/${name}` : name);
const isOver = (pod) => /^(Succeeded|Failed)$/.test(pod.status?.phase);

function valueText(value) {
  const [kind, content] = Object.entries(value)[0] ?? ["", ""];
  return kind === "string" ? content : String(content);
}

/** The NUMA node of a DRA device, where an attribute says so. */
function numaOf(attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (/(^|\/)numa(Node|_node)?$/i.test(name) && value.int !== undefined) return String(value.int);
  }
  return "";
}

/** The attributes and capacities of a device of a slice. */
function factsOf(device) {
  const attributes = Object.entries(device?.attributes ?? {}).map(([name, value]) => [name, valueText(value)]);
  const capacities = Object.entries(device?.capacity ?? {}).map(([name, value]) => [name, value.value ?? String(value)]);
  return [...attributes, ...capacities];
}

const taintText = (taint) => `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`;

function stripsOf(devices) {
  const strips = new Map();
  for (const device of devices) {
    if (!strips.has(device.numa)) strips.set(device.numa, []);
    strips.get(device.numa).push(device);
  }
  return [...strips.entries()]
    .sort(([a], [b]) => (a === "") - (b === "") || compare(a, b))
    .map(([numa, list]) => ({ label: numa === "" ? "" : `NUMA ${numa}`, devices: list }));
}

/** Every device counts once, as in `davit devices`: by its use or, when nobody has it, by what keeps it from being
 * given. `bad` are those that somebody has and that are not well. */
export function countsOf(devices) {
  const counts = Object.fromEntries([...USES, ...FAULTS, BAD].map((state) => [state, 0]));
  for (const { use, fault } of devices) {
    counts[use === "free" && fault ? fault : use]++;
    if (use !== "free" && fault) counts[BAD]++;
  }
  return counts;
}

/** "3 free · 2 held (1 not well)", of what is not nothing, as davit status says it: what is being prepared is held, too. */
export function countsText(counts) {
  const had = counts.held ? "held" : "preparing";
  const bad = { [had]: counts[BAD] ? ` (${counts[BAD]} not well)` : "" };
  const shown = [...USES, ...FAULTS].filter((state) => counts[state]).map((state) => `${counts[state]} ${state}${bad[state] ?? ""}`);
  return shown.join(" · ") || "no devices";
}

/** A device: `holders` are {kind, space, name, text}. */
function deviceOf(device) {
  const { use, fault } = device;
  const state = fault && use === "free" ? fault : fault ? `${use}, ${fault}` : use;
  return { ...device, state, names: device.holders.map((holder) => holder.text).join(", ") };
}

export class Model {
  node = {}; // the fields of /davit/v1/node
  #uses = null; // the devices that claims have, until something changes
  #histories = new Histories();

  constructor() {
    for (const kind of KINDS) this[kind] = new Map();
  }

  /** For someone else, who may see other things. */
  clear() {
    this.node = {};
    for (const kind of KINDS) this[kind] = new Map();
    this.#uses = null;
    this.#histories.clear();
  }

  setNode(doc) {
    Object.assign(this.node, doc);
    this.#uses = null;
  }

  setAll(kind, objects) {
    const kept = kind === "events" ? Model.#newest(objects).slice(0, EVENTS_MAX).reverse() : objects;
    this[kind] = new Map(kept.map((object) => [keyOf(object), object]));
    this.#uses = null;
  }

  change(kind, type, object) {
    this[kind].delete(keyOf(object));
    if (type !== "DELETED") this[kind].set(keyOf(object), object);
    if (kind === "events" && this.events.size > EVENTS_MAX) {
      this.events.delete(this.events.keys().next().value); // the one that has not changed for longest
    }
    this.#uses = null;
  }

  // ---- nodes ----

  /** The pods of this node, without those that only hold devices for a lease. */
  nodePods() {
    return (this.node.pods ?? []).filter((status) => !status.lease);
  }

  /** Those of plugins and the drivers, as davit status counts them. */
  countResources() {
    return (this.node.resources ?? []).length + new Set((this.node.pools ?? []).map((pool) => pool.driver)).size;
  }

  /** The names of all nodes, this one first. */
  nodeNames() {
    const own = this.node.node_name;
    const others = [...this.nodes.values()].map((node) => node.metadata.name).filter((name) => name !== own);
    return [own, ...others.sort(compare)];
  }

  nodeObject(name) {
    return [...this.nodes.values()].find((node) => node.metadata.name === name);
  }

  /** Why a node takes no pods; "": it does, or nobody says so. */
  nodeTrouble(name) {
    const node = this.nodeObject(name);
    const ready = (node?.status?.conditions ?? []).find((condition) => condition.type === "Ready");
    if (ready && ready.status !== "True") return ready.message || ready.reason || "not ready";
    return node?.spec?.unschedulable ? "cordoned: no new pods" : "";
  }

  /** "ready", "not ready", or "unknown": nobody has said. */
  readiness(name) {
    const ready = (this.nodeObject(name)?.status?.conditions ?? []).find((condition) => condition.type === "Ready");
    if (!ready && name !== this.node.node_name) return "unknown";
    return this.isReady(name) ? "ready" : "not ready";
  }

  isReady(name) {
    const ready = (this.nodeObject(name)?.status?.conditions ?? []).find((condition) => condition.type === "Ready");
    return name === this.node.node_name || !ready || ready.status === "True";
  }

  // ---- devices ----

  /** The devices of a node: [{key, title, note, isBad, use, strips: [{label, devices}], counts, n}] */
  groups(name) {
    const isOwn = name === this.node.node_name;
    const groups = isOwn ? [...this.#pluginGroups(), ...this.#ownPoolGroups()]
      : [...this.#capacityGroups(name), ...this.#poolGroups(name)];
    for (const group of groups) {
      const devices = group.strips.flatMap((strip) => strip.devices);
      group.counts = countsOf(devices);
      group.n = devices.length;
      if (isOwn) group.past = this.#pastOf(group);
    }
    if (isOwn) this.#histories.see(groups.flatMap((group) => group.strips.flatMap((strip) => strip.devices)));
    return groups;
  }

  history(key) {
    return this.#histories.of(key);
  }

  /** How many of its devices were held during the last hour: {step_ms, held}, the newest last. */
  #pastOf({ resource, driver, pool }) {
    const uses = this.node.uses ?? [];
    const found = resource ? uses.find((use) => use.resource === resource)
      : uses.find((use) => use.driver === driver && use.pool === pool);
    return { stepMs: Number(this.node.use_step_ms ?? 0), held: (found?.held ?? []).map(Number) };
  }

  #pluginGroups() {
    return (this.node.resources ?? []).map((resource) => {
      const isGone = resource.removed || !resource.connected;
      const devices = resource.devices.map((device) => {
        const holders = device.holders.map((holder) => Model.#holder(holder));
        return deviceOf({
          key: `${resource.name} ${device.id}`, id: device.id, holders, numa: device.numa_nodes.join(","),
          use: holders.length ? "held" : "free", fault: device.trouble, facts: [["resource", resource.name]],
        });
      });
      let note = "";
      if (resource.removed) note = "removed";
      else if (isGone) note = "plugin gone";
      return {
        key: `plugin ${resource.name}`, title: resource.name, note, isBad: isGone, strips: stripsOf(devices), resource: resource.name,
      };
    });
  }

  /** Who has a device: a lease, a claim with its pods, or a container of a pod. */
  static #holder({ pod, container, claim, claim_state: state, lease, user, since_ms: since }) {
    if (lease) return { kind: "lease", space: "", name: lease, text: `lease ${lease} of ${user}`, since: Number(since) };
    const podName = pod?.name || pod?.uid || "";
    if (!claim) {
      const text = `${nameOf(pod?.namespace, podName)} (${container})`;
      return { kind: "pod", space: pod?.namespace ?? "", name: podName, text, since: Number(since) };
    }
    const [space, name] = [claim.slice(0, claim.indexOf("/")), claim.slice(claim.indexOf("/") + 1)];
    const pods = podName ? [podName] : [];
    return { kind: "claim", space, name, pods, state, text: claim + (podName ? ` (${podName})` : ""), since: Number(since) };
  }

  /** Holders that are one claim for several pods, as one. */
  static #byClaim(holders) {
    const claims = new Map();
    const others = [];
    for (const holder of holders) {
      const known = holder.kind === "claim" && claims.get(holder.text.split(" ")[0]);
      if (known) {
        known.pods.push(...holder.pods);
        known.text = `${nameOf(known.space, known.name)} (${known.pods.join(", ")})`;
      } else if (holder.kind === "claim") {
        claims.set(nameOf(holder.space, holder.name), holder);
      } else {
        others.push(holder);
      }
    }
    return [...claims.values(), ...others];
  }

  /** "pool device": what slices say of a driver's devices. */
  #published(driver) {
    const devices = new Map();
    for (const { spec } of this.slices.values()) {
      if (spec.driver !== driver) continue;
      for (const device of spec.devices ?? []) devices.set(`${spec.pool.name} ${device.name}`, device);
    }
    return devices;
  }

  #ownPoolGroups() {
    const claims = this.claimsOnNode();
    return (this.node.pools ?? []).map((pool) => {
      const published = this.#published(pool.driver);
      const devices = pool.devices.map((device) => {
        const holders = Model.#byClaim(device.holders.map((holder) => Model.#holder(holder)));
        for (const holder of holders) holder.state = claims.get(nameOf(holder.space, holder.name))?.state ?? holder.state;
        const isUnready = holders.some(({ state }) => /^(wanted|preparing|unpreparing)$/.test(state ?? ""));
        const facts = [["pool", pool.name], ...device.taints.map((taint) => ["taint", taint])];
        for (const { state } of holders) if (state) facts.push(["on the node", state]);
        if (device.health && device.health !== "Unknown") {
          facts.push(["health", device.message ? `${device.health}: ${device.message}` : device.health]);
        }
        if (device.offer) facts.push(["offer", device.offer]);
        if (device.shortage) facts.push(["blocked", device.shortage], ["shared with", (device.blocked_by ?? []).join(", ")]);
        return deviceOf({
          key: `${pool.driver} ${pool.name} ${device.name}`, id: device.name, holders, numa: device.numa_nodes.join(","),
          use: isUnready ? "preparing" : holders.length ? "held" : "free", fault: device.trouble,
          facts: [...facts, ...factsOf(published.get(`${pool.name} ${device.name}`))],
        });
      });
      return {
        key: `pool ${pool.driver} ${pool.name}`, title: pool.driver, driver: pool.driver, pool: pool.name, isBad: !pool.connected,
        strips: stripsOf(devices), note: pool.connected ? `pool ${pool.name}` : `pool ${pool.name}, driver not here`,
      };
    });
  }

  /** Of another node the API knows how many devices of a plugin there are, and which pods have some: not which. */
  #capacityGroups(name) {
    const { capacity = {}, allocatable = {} } = this.nodeObject(name)?.status ?? {};
    const resources = Object.keys(capacity).filter((key) => key.includes("/") && Number(capacity[key]) > 0);
    const isGone = !this.isReady(name);
    return resources.sort(compare).map((resource) => {
      const holders = this.#podsWith(resource, name);
      const n = Number(capacity[resource]);
      const nGood = Number(allocatable[resource] ?? 0);
      const devices = Array.from({ length: n }, (_, i) => deviceOf({
        key: `${name} ${resource} ${i}`, id: `${resource} ${i + 1} of ${n}`, numa: "", facts: [["node", name], ["resource", resource]],
        holders: i < holders.length ? [holders[i]] : [], use: i < holders.length ? "held" : "free",
        fault: isGone ? "gone" : i >= nGood ? "unhealthy" : "",
      }));
      return { key: `${name} ${resource}`, title: resource, note: "by number", isBad: false, strips: stripsOf(devices) };
    });
  }

  #podsWith(resource, node) {
    return [...this.pods.values()].filter((pod) => pod.spec.nodeName === node && !isOver(pod)).flatMap((pod) => {
      const sum = pod.spec.containers.reduce((n, container) => n + Number(container.resources?.limits?.[resource] ?? 0), 0);
      const { namespace: space, name } = pod.metadata;
      return Array.from({ length: sum }, () => ({ kind: "pod", space, name, text: nameOf(space, name) }));
    });
  }

  static #isOn(node, object) {
    return object.allNodes === true || object.nodeSelector !== undefined || object.nodeName === node;
  }

  /** "driver pool device": the claims that have it, as holders. */
  #usesOfDevices() {
    if (this.#uses) return this.#uses;
    const uses = new Map();
    for (const claim of this.claims.values()) {
      const { namespace: space, name } = claim.metadata;
      const pods = (claim.status?.reservedFor ?? []).map((ref) => ref.name);
      const text = `${nameOf(space, name)}${pods.length ? ` (${pods.join(", ")})` : ""}`;
      for (const result of claim.status?.allocation?.devices?.results ?? []) {
        const key = `${result.driver} ${result.pool} ${result.device}`;
        uses.set(key, [...(uses.get(key) ?? []), { kind: "claim", space, name, pods, text }]);
      }
    }
    this.#uses = uses;
    return uses;
  }

  claimsOnNode() {
    return new Map((this.node.claims ?? []).map((claim) => [nameOf(claim.namespace, claim.name), claim]));
  }

  /** What keeps claims from a device: its own taints, and those of rules that are about it. */
  #taintsOf(driver, pool, device) {
    const fits = (want, is) => !want || want === is;
    const rules = [...this.rules.values()].filter(({ spec }) => {
      const wanted = spec.deviceSelector ?? {};
      return fits(wanted.driver, driver) && fits(wanted.pool, pool) && fits(wanted.device, device.name);
    });
    return [...(device.taints ?? []), ...rules.map((rule) => rule.spec.taint)];
  }

  #poolDevice(pool, device, isGone, counters) {
    const key = `${pool.driver} ${pool.name} ${device.name}`;
    const holders = this.#usesOfDevices().get(key) ?? [];
    const taints = this.#taintsOf(pool.driver, pool.name, device);
    const isTainted = taints.some((taint) => KEEPS_AWAY.test(taint.effect));
    const shortage = holders.length ? "" : counters.shortageOf(device);
    return deviceOf({
      key, id: device.name, holders, numa: numaOf(device.attributes), use: holders.length ? "held" : "free",
      fault: isGone ? "gone" : isTainted ? "tainted" : shortage ? "blocked" : "",
      facts: [...taints.map((taint) => ["taint", taintText(taint)]), ...(shortage ? [["blocked", shortage]] : []), ...factsOf(device)],
    });
  }

  /** The pools of a node, of their newest generation. */
  #poolsOf(node) {
    const pools = new Map();
    for (const { spec } of this.slices.values()) {
      if (!spec.perDeviceNodeSelection && !Model.#isOn(node, spec)) continue;
      const key = `${spec.driver} ${spec.pool.name}`;
      const pool = pools.get(key);
      const devices = (spec.devices ?? []).filter((device) => !spec.perDeviceNodeSelection || Model.#isOn(node, device));
      const sets = spec.sharedCounters ?? [];
      if (!pool || pool.generation < spec.pool.generation) {
        pools.set(key, { driver: spec.driver, name: spec.pool.name, generation: spec.pool.generation, devices, sets: [...sets] });
      } else if (pool.generation === spec.pool.generation) {
        pool.devices.push(...devices);
        pool.sets.push(...sets);
      }
    }
    return pools;
  }

  /** Pools of another node, as the API has them. */
  #poolGroups(node) {
    const isGone = !this.isReady(node);
    return [...this.#poolsOf(node).entries()].sort(([a], [b]) => compare(a, b)).map(([key, pool]) => {
      const uses = this.#usesOfDevices();
      const counters = new Counters(pool.sets, pool.devices.filter(({ name }) => uses.has(`${pool.driver} ${pool.name} ${name}`)));
      const devices = pool.devices
        .sort((a, b) => compare(a.name, b.name))
        .map((device) => this.#poolDevice(pool, device, isGone, counters));
      return { key: `pool ${key}`, title: pool.driver, isBad: isGone, strips: stripsOf(devices), note: `pool ${pool.name}` };
    });
  }

  // ---- events ----

  static timeOf(event) {
    return Date.parse(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ??
      event.firstTimestamp ?? event.metadata.creationTimestamp) || 0;
  }

  static #newest(events) {
    return events.map((event) => [Model.timeOf(event), event]).sort(([a], [b]) => b - a).map(([, event]) => event);
  }

  sortedEvents() {
    return Model.#newest([...this.events.values()]);
  }

  eventsAbout(kind, space, name) {
    return this.sortedEvents().filter(({ involvedObject: about }) =>
      about?.kind === kind && (about.namespace ?? "") === space && about.name === name);
  }
}
