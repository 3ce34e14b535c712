// model.js - what is known of the node, put together from its own documents and from the API.
// No page here: it could be shown by anything.

export const STATES = ["free", "held", "preparing", "unhealthy", "gone"];
const HISTORY_MAX = 10;
const EVENTS_MAX = 1000;
const HISTORIES_MAX = 20000;

const { compare } = new Intl.Collator(undefined, { numeric: true }); // gpu-2 before gpu-10

const keyOf = (object) => object.metadata.uid;
const podText = (space, name) => (space ? `${space}/${name}` : name);

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

export class Model {
  node = {}; // the fields of /davit/v1/node
  slices = new Map();
  claims = new Map();
  pods = new Map();
  events = new Map();
  #before = new Map(); // device key: what it was like
  #history = new Map();

  /** For someone else, who may see other things. */
  clear() {
    this.node = {};
    for (const kind of ["slices", "claims", "pods", "events"]) this[kind] = new Map();
    this.#before.clear();
    this.#history.clear();
  }

  setNode(doc) {
    Object.assign(this.node, doc);
  }

  setAll(kind, objects) {
    const kept = kind === "events" ? Model.#newest(objects).slice(0, EVENTS_MAX).reverse() : objects;
    this[kind] = new Map(kept.map((object) => [keyOf(object), object]));
  }

  change(kind, type, object) {
    this[kind].delete(keyOf(object));
    if (type !== "DELETED") this[kind].set(keyOf(object), object);
    if (kind === "events" && this.events.size > EVENTS_MAX) {
      this.events.delete(this.events.keys().next().value); // the one that has not changed for longest
    }
  }

  // ---- devices ----

  /** [{key, title, note, isBad, strips: [{label, devices}], counts, n}] */
  groups() {
    const groups = [...this.#pluginGroups(), ...this.#poolGroups()];
    const seen = new Set();
    for (const group of groups) {
      group.counts = Object.fromEntries(STATES.map((state) => [state, 0]));
      group.n = 0;
      for (const strip of group.strips) {
        for (const device of strip.devices) {
          group.counts[device.state]++;
          group.n++;
          seen.add(device.key);
          this.#remember(device);
        }
      }
    }
    for (const key of this.#before.keys()) if (!seen.has(key)) this.#forget(key);
    return groups;
  }

  history(key) {
    return this.#history.get(key) ?? [];
  }

  #note(key, text) {
    const list = this.#history.get(key) ?? [];
    list.unshift({ at: Date.now(), text });
    list.length = Math.min(list.length, HISTORY_MAX);
    this.#history.delete(key);
    this.#history.set(key, list); // at the end
    if (this.#history.size > HISTORIES_MAX) this.#history.delete(this.#history.keys().next().value);
  }

  #remember(device) {
    const now = `${device.state}\n${device.holders.join(", ")}`;
    const before = this.#before.get(device.key);
    this.#before.set(device.key, now);
    if (before === undefined) {
      if (this.#history.has(device.key)) this.#note(device.key, `back, ${device.state}`);
    } else if (before !== now) {
      const [state, holders] = before.split("\n");
      const change = state === device.state ? device.state : `${state} → ${device.state}`;
      const holder = device.holders.length ? `, ${device.holders.join(", ")}` : holders && `, was ${holders}`;
      this.#note(device.key, change + holder);
    }
  }

  #forget(key) {
    this.#before.delete(key);
    this.#note(key, "no longer listed");
  }

  static #strips(devices) {
    const strips = new Map();
    for (const device of devices) {
      if (!strips.has(device.numa)) strips.set(device.numa, []);
      strips.get(device.numa).push(device);
    }
    return [...strips.entries()]
      .sort(([a], [b]) => (a === "") - (b === "") || compare(a, b))
      .map(([numa, list]) => ({ label: numa === "" ? "" : `NUMA ${numa}`, devices: list }));
  }

  #pluginGroups() {
    return (this.node.resources ?? []).map((resource) => {
      const isGone = resource.removed || !resource.connected;
      const devices = resource.devices.map((device) => {
        const holders = device.holders.map((holder) =>
          `${podText(holder.pod.namespace, holder.pod.name || holder.pod.uid)} (${holder.container})`);
        let state = holders.length ? "held" : "free";
        if (!device.healthy) state = "unhealthy";
        if (isGone) state = "gone";
        return {
          key: `${resource.name} ${device.id}`, id: device.id, state, holders,
          numa: device.numa_nodes.join(","), facts: [["resource", resource.name]],
        };
      });
      let note = "";
      if (resource.removed) note = "removed";
      else if (isGone) note = "plugin gone";
      return { key: `plugin ${resource.name}`, title: resource.name, note, isBad: isGone, strips: Model.#strips(devices) };
    });
  }

  #isHere(object) {
    return object.allNodes === true || object.nodeSelector !== undefined || object.nodeName === this.node.node_name;
  }

  /** "driver pool device": what claims say of it. */
  #uses() {
    const uses = new Map();
    const add = (key, use) => {
      if (!uses.has(key)) uses.set(key, new Map());
      const of = uses.get(key);
      of.set(use.claim, { ...of.get(use.claim), ...use });
    };
    const onNode = new Map((this.node.claims ?? []).map((claim) => [podText(claim.namespace, claim.name), claim]));
    for (const claim of this.claims.values()) {
      const name = podText(claim.metadata.namespace, claim.metadata.name);
      const { state, error } = onNode.get(name) ?? {}; // which lists devices once they are prepared
      for (const result of claim.status?.allocation?.devices?.results ?? []) {
        add(`${result.driver} ${result.pool} ${result.device}`, {
          claim: name, pods: (claim.status.reservedFor ?? []).map((ref) => ref.name), state, error,
        });
      }
    }
    for (const claim of this.node.claims ?? []) {
      for (const driver of claim.drivers) {
        for (const device of driver.devices) {
          add(`${driver.name} ${device.pool} ${device.device}`, {
            claim: podText(claim.namespace, claim.name), pods: claim.pods.map((pod) => pod.name || pod.uid),
            state: claim.state, error: claim.error, health: device.health, message: device.message,
          });
        }
      }
    }
    return uses;
  }

  #poolDevice(key, device, isGone, uses) {
    const of = [...(uses.get(key)?.values() ?? [])];
    const facts = [];
    let state = of.length ? "held" : "free";
    if (of.some((use) => use.state && use.state !== "prepared")) state = "preparing";
    if (of.some((use) => use.health === "Unhealthy")) state = "unhealthy";
    if (isGone) state = "gone";
    for (const taint of device.taints ?? []) {
      facts.push(["taint", `${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}`]);
    }
    for (const use of of) {
      if (use.state) facts.push(["on the node", use.state]);
      if (use.health && use.health !== "Unknown") {
        facts.push(["health", use.message ? `${use.health}: ${use.message}` : use.health]);
      }
      if (use.error) facts.push(["error", use.error]);
    }
    for (const [name, value] of Object.entries(device.attributes ?? {})) facts.push([name, valueText(value)]);
    for (const [name, value] of Object.entries(device.capacity ?? {})) facts.push([name, value.value ?? String(value)]);
    return {
      key, id: device.name, state, facts, numa: numaOf(device.attributes),
      holders: of.map((use) => `${use.claim}${use.pods.length ? ` (${use.pods.join(", ")})` : ""}`),
    };
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

  #poolGroups() {
    const pools = new Map(); // of the newest generation
    for (const { spec } of this.slices.values()) {
      if (!spec.perDeviceNodeSelection && !this.#isHere(spec)) continue;
      const key = `${spec.driver} ${spec.pool.name}`;
      const pool = pools.get(key);
      const devices = (spec.devices ?? []).filter((device) => !spec.perDeviceNodeSelection || this.#isHere(device));
      if (!pool || pool.generation < spec.pool.generation) {
        pools.set(key, { driver: spec.driver, name: spec.pool.name, generation: spec.pool.generation, devices });
      } else if (pool.generation === spec.pool.generation) {
        pool.devices.push(...devices);
      }
    }
    this.#addHeld(pools);
    const uses = this.#uses();
    return [...pools.entries()].sort(([a], [b]) => compare(a, b)).map(([key, pool]) => {
      const plugin = (this.node.plugins ?? []).find((p) => p.type === "DRAPlugin" && p.name === pool.driver);
      const isGone = !plugin || plugin.state !== "registered";
      const devices = pool.devices
        .sort((a, b) => compare(a.name, b.name))
        .map((device) => this.#poolDevice(`${key} ${device.name}`, device, isGone, uses));
      return {
        key: `pool ${key}`, title: pool.driver, note: isGone ? `pool ${pool.name}, driver not here` : `pool ${pool.name}`,
        isBad: isGone, strips: Model.#strips(devices),
      };
    });
  }

  // ---- claims ----

  /** "namespace/claim": the pods that use it. */
  #podsByClaim() {
    const pods = new Map();
    for (const pod of this.pods.values()) {
      const refs = [
        ...(pod.spec.resourceClaims ?? []), ...(pod.status?.resourceClaimStatuses ?? []),
        pod.status?.extendedResourceClaimStatus,
      ];
      for (const name of new Set(refs.map((ref) => ref?.resourceClaimName).filter(Boolean))) {
        const key = podText(pod.metadata.namespace, name);
        if (!pods.has(key)) pods.set(key, []);
        pods.get(key).push(pod);
      }
    }
    return pods;
  }

  /** "namespace/claim": the newest event about it. */
  #eventsByClaim() {
    const events = new Map();
    for (const event of this.sortedEvents()) {
      const about = event.involvedObject;
      const key = podText(about?.namespace, about?.name);
      if (about?.kind === "ResourceClaim" && !events.has(key)) events.set(key, event);
    }
    return events;
  }

  /** Why an unallocated claim waits, by those who know. */
  static #whyPending(pods, event) {
    const reasons = [];
    for (const pod of pods) {
      const condition = (pod.status?.conditions ?? []).find((c) => c.type === "PodScheduled" && c.status === "False");
      if (condition?.message) reasons.push(`${pod.metadata.name}: ${condition.message}`);
    }
    if (event) reasons.push(`${event.reason}: ${event.message}`);
    if (reasons.length) return [...new Set(reasons)].join("\n");
    return pods.length ? "not scheduled yet" : "no pod uses it";
  }

  /** Why an allocated claim has not come to the node yet: what the pods wait for that it is reserved for. */
  #whyNotHere(claim) {
    const names = new Set((claim.status.reservedFor ?? []).map((ref) => ref.name));
    return (this.node.pods ?? [])
      .filter(({ pod, awaited }) => awaited && pod.namespace === claim.metadata.namespace && names.has(pod.name))
      .map(({ pod, awaited }) => `${pod.name}: waits for ${awaited}`).join("\n");
  }

  /** [{space, name, state, devices, pods, why}], those that wait first. */
  claimRows() {
    const onNode = new Map((this.node.claims ?? []).map((claim) => [podText(claim.namespace, claim.name), claim]));
    const podsOf = this.#podsByClaim();
    const eventOf = this.#eventsByClaim();
    const rows = [];
    for (const claim of this.claims.values()) {
      const key = podText(claim.metadata.namespace, claim.metadata.name);
      const node = onNode.get(key);
      const allocation = claim.status?.allocation;
      const pods = podsOf.get(key) ?? [];
      onNode.delete(key);
      rows.push({
        space: claim.metadata.namespace, name: claim.metadata.name,
        state: node?.state ?? (claim.metadata.deletionTimestamp ? "terminating" : allocation ? "allocated" : "pending"),
        devices: (allocation?.devices?.results ?? []).map((result) => result.device),
        pods: (claim.status?.reservedFor ?? []).map((ref) => ref.name).concat(allocation ? [] : pods.map((pod) => pod.metadata.name)),
        why: node ? node.error || (node.state === "wanted" && allocation && this.#whyNotHere(claim)) ||
            (node.awaited && `waits for ${node.awaited}`)
          : allocation ? this.#whyNotHere(claim) : Model.#whyPending(pods, eventOf.get(key)),
      });
    }
    for (const claim of onNode.values()) { // the API does not have it, or does not show it to us
      rows.push({
        space: claim.namespace, name: claim.name, state: claim.state,
        devices: claim.drivers.flatMap((driver) => driver.devices.map((device) => device.device)),
        pods: claim.pods.map((pod) => pod.name || pod.uid),
        why: claim.error || (claim.awaited && `waits for ${claim.awaited}`),
      });
    }
    return rows.sort((a, b) => Boolean(b.why) - Boolean(a.why) || compare(a.space, b.space) || compare(a.name, b.name));
  }

  // ---- pods ----

  /** Leases beside pods: who holds what without one, or waits for it. */
  #leaseRows() {
    return (this.node.leases ?? []).map((lease) => {
      const command = (lease.command[0] ?? "").split("/").pop();
      let why = "";
      if (lease.place) why = `waits for ${lease.wanted}, ${lease.place} in the queue`;
      else if (lease.end_reason) why = `ends: ${lease.end_reason}`;
      return {
        space: "lease", name: `${lease.id}${command && ` ${command}`} of ${lease.user}`, phase: "", state: lease.state,
        since: lease.since_ms, why,
      };
    });
  }

  /** The node's own, those that no node has yet, and leases, which hold devices by pods of their names. */
  podRows() {
    const onNode = new Map((this.node.pods ?? []).map((status) => [podText(status.pod.namespace, status.pod.name), status]));
    const rows = this.#leaseRows();
    for (const lease of this.node.leases ?? []) onNode.delete(podText("default", `lease-${lease.id}`));
    for (const pod of this.pods.values()) {
      const key = podText(pod.metadata.namespace, pod.metadata.name);
      const node = onNode.get(key);
      if (!node && pod.spec.nodeName && pod.spec.nodeName !== this.node.node_name) continue;
      const condition = (pod.status?.conditions ?? []).find((c) => c.type === "PodScheduled" && c.status === "False");
      onNode.delete(key);
      rows.push({
        space: pod.metadata.namespace, name: pod.metadata.name,
        phase: pod.metadata.deletionTimestamp ? "terminating" : pod.status?.phase ?? "Pending",
        state: node?.state ?? "", since: node?.since_ms ?? Date.parse(pod.metadata.creationTimestamp),
        why: (node?.awaited && `waits for ${node.awaited}`) || Model.#troubleOf(node) || condition?.message ||
          [pod.status?.reason, pod.status?.message].filter(Boolean).join(": "),
      });
    }
    for (const status of onNode.values()) {
      rows.push({
        space: status.pod.namespace, name: status.pod.name || status.pod.uid, phase: "", state: status.state,
        since: status.since_ms, why: (status.awaited && `waits for ${status.awaited}`) || Model.#troubleOf(status),
      });
    }
    return rows.sort((a, b) => Boolean(b.why) - Boolean(a.why) || b.since - a.since);
  }

  /** "main: example.com/gpu gpu0 Unhealthy": what a pod holds and is not well. */
  static #troubleOf(status) {
    const bad = [];
    for (const container of status?.containers ?? []) {
      for (const resource of container.resources) {
        for (const device of resource.devices) {
          if (device.health !== "Unhealthy") continue;
          bad.push(`${container.container}: ${resource.resource} ${device.id} ${device.health}`);
        }
      }
    }
    return bad.join(", ");
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
}
