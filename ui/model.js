// model.js - what is known, put together from the node's own documents and from the API: which devices
// there are, on which node, how they are and who has them. No page here: it could be shown by anything.

import { Histories } from "./history.js";

/** What a device is used for, and what is wrong with it: one of each, or nothing wrong. */
export const USES = ["free", "held", "preparing"];
export const FAULTS = ["tainted", "unhealthy", "gone"];

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

export function countsOf(devices) {
  const counts = Object.fromEntries([...USES, ...FAULTS].map((state) => [state, 0]));
  for (const { use, fault } of devices) {
    if (use !== "free" || !fault) counts[use]++; // what nobody could be given is not free
    if (fault) counts[fault]++;
  }
  return counts;
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

  isReady(name) {
    const ready = (this.nodeObject(name)?.status?.conditions ?? []).find((condition) => condition.type === "Ready");
    return name === this.node.node_name || !ready || ready.status === "True";
  }

  // ---- devices ----

  /** The devices of a node: [{key, title, note, isBad, use, strips: [{label, devices}], counts, n}] */
  groups(name) {
    const isOwn = name === this.node.node_name;
    const groups = [...(isOwn ? this.#pluginGroups() : this.#capacityGroups(name)), ...this.#poolGroups(name)];
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
        const holders = device.holders.map((holder) => this.#holder(holder));
        return deviceOf({
          key: `${resource.name} ${device.id}`, id: device.id, holders, numa: device.numa_nodes.join(","),
          use: holders.length ? "held" : "free", fault: isGone ? "gone" : device.healthy ? "" : "unhealthy",
          facts: [["resource", resource.name]],
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

  /** Who holds a plugin's device: a pod, or a lease, which the node keeps as a pod of its name. */
  #holder({ pod, container }) {
    const lease = (this.node.leases ?? []).find((one) => pod.name === `lease-${one.id}`);
    if (lease) return { kind: "lease", space: "", name: lease.id, text: `lease ${lease.id} of ${lease.user}` };
    const name = pod.name || pod.uid;
    return { kind: "pod", space: pod.namespace, name, text: `${nameOf(pod.namespace, name)} (${container})` };
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

  /** "driver pool device": the claims that have it, by their names. */
  #usesOfDevices() {
    if (this.#uses) return this.#uses;
    const uses = new Map();
    const add = (key, use) => {
      if (!uses.has(key)) uses.set(key, new Map());
      const of = uses.get(key);
      const name = nameOf(use.space, use.claim);
      of.set(name, { ...of.get(name), ...use });
    };
    const onNode = this.claimsOnNode();
    for (const claim of this.claims.values()) {
      const { namespace: space, name } = claim.metadata;
      const { state, error } = onNode.get(nameOf(space, name)) ?? {}; // which lists devices once they are prepared
      for (const result of claim.status?.allocation?.devices?.results ?? []) {
        add(`${result.driver} ${result.pool} ${result.device}`, {
          space, claim: name, pods: (claim.status.reservedFor ?? []).map((ref) => ref.name), state, error,
        });
      }
    }
    for (const claim of this.node.claims ?? []) {
      for (const driver of claim.drivers) {
        for (const device of driver.devices) {
          add(`${driver.name} ${device.pool} ${device.device}`, {
            space: claim.namespace, claim: claim.name, pods: claim.pods.map((pod) => pod.name || pod.uid),
            state: claim.state, error: claim.error, health: device.health, message: device.message,
          });
        }
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

  #poolDevice(pool, device, isGone) {
    const key = `${pool.driver} ${pool.name} ${device.name}`;
    const of = [...(this.#usesOfDevices().get(key)?.values() ?? [])];
    const taints = this.#taintsOf(pool.driver, pool.name, device);
    const facts = taints.map((taint) => ["taint", taintText(taint)]);
    let fault = taints.some((taint) => KEEPS_AWAY.test(taint.effect)) ? "tainted" : "";
    if (of.some((use) => use.health === "Unhealthy")) fault = "unhealthy";
    if (isGone) fault = "gone";
    for (const use of of) {
      if (use.state) facts.push(["on the node", use.state]);
      if (use.health && use.health !== "Unknown") {
        facts.push(["health", use.message ? `${use.health}: ${use.message}` : use.health]);
      }
      if (use.error) facts.push(["error", use.error]);
    }
    for (const [name, value] of Object.entries(device.attributes ?? {})) facts.push([name, valueText(value)]);
    for (const [name, value] of Object.entries(device.capacity ?? {})) facts.push([name, value.value ?? String(value)]);
    return deviceOf({
      key, id: device.name, facts, fault, numa: numaOf(device.attributes),
      use: of.some((use) => use.state && use.state !== "prepared") ? "preparing" : of.length ? "held" : "free",
      holders: of.map((use) => ({
        kind: "claim", space: use.space, name: use.claim, pods: use.pods,
        text: `${nameOf(use.space, use.claim)}${use.pods.length ? ` (${use.pods.join(", ")})` : ""}`,
      })),
    });
  }

  /** What is held on this node, whatever slices say of it. */
  #addHeld(pools) {
    const known = new Set();
    for (const [key, pool] of pools) for (const device of pool.devices) known.add(`${key} ${device.name}`);
    for (const claim of this.node.claims ?? []) {
      for (const driver of claim.drivers) {
        for (const { pool: name, device } of driver.devices) {
          const key = `${driver.name} ${name}`;
          if (known.has(`${key} ${device}`)) continue;
          known.add(`${key} ${device}`);
          if (!pools.has(key)) pools.set(key, { driver: driver.name, name, generation: 0, devices: [] });
          pools.get(key).devices.push({ name: device });
        }
      }
    }
  }

  /** The pools of a node, of their newest generation. */
  #poolsOf(node) {
    const pools = new Map();
    for (const { spec } of this.slices.values()) {
      if (!spec.perDeviceNodeSelection && !Model.#isOn(node, spec)) continue;
      const key = `${spec.driver} ${spec.pool.name}`;
      const pool = pools.get(key);
      const devices = (spec.devices ?? []).filter((device) => !spec.perDeviceNodeSelection || Model.#isOn(node, device));
      if (!pool || pool.generation < spec.pool.generation) {
        pools.set(key, { driver: spec.driver, name: spec.pool.name, generation: spec.pool.generation, devices });
      } else if (pool.generation === spec.pool.generation) {
        pool.devices.push(...devices);
      }
    }
    if (node === this.node.node_name) this.#addHeld(pools);
    return pools;
  }

  #poolGroups(node) {
    const isOwn = node === this.node.node_name;
    return [...this.#poolsOf(node).entries()].sort(([a], [b]) => compare(a, b)).map(([key, pool]) => {
      const plugin = (this.node.plugins ?? []).find((p) => p.type === "DRAPlugin" && p.name === pool.driver);
      const isGone = isOwn ? !plugin || plugin.state !== "registered" : !this.isReady(node);
      const devices = pool.devices
        .sort((a, b) => compare(a.name, b.name))
        .map((device) => this.#poolDevice(pool, device, isGone));
      return {
        key: `pool ${key}`, title: pool.driver, driver: pool.driver, pool: pool.name, isBad: isGone, strips: stripsOf(devices),
        note: isOwn && isGone ? `pool ${pool.name}, driver not here` : `pool ${pool.name}`,
      };
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
