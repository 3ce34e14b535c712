// rows.js - claims, pods and leases as rows: how each is, and why it waits.

import { compare, nameOf } from "./model.js";

const waitsFor = (awaited) => (awaited ? `waits for ${awaited}` : "");

/** Why a pod of the node is not there yet; one that was not admitted, or cannot go, says why, others what they wait for. */
function whyOnNode(status) {
  if (!status?.awaited) return "";
  if (!status.reason) return waitsFor(status.awaited);
  const again = Number(status.retry_at_ms) ? `; tried again in ${Math.max(1, Math.round((status.retry_at_ms - Date.now()) / 1000))} s` : "";
  return `${status.awaited}${again}`; // it begins with the reason
}

/** What a container says that does not run, or that has failed and is started again: "main: ErrImagePull: ...". */
function containersSay(pod) {
  if (/^(Succeeded|Failed)$/.test(pod.status?.phase)) return "";
  for (const status of [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]) {
    const { waiting, terminated } = status.state ?? {};
    if (waiting?.reason && !/^(ContainerCreating|PodInitializing)$/.test(waiting.reason)) {
      return `${status.name}: ${[waiting.reason, waiting.message].filter(Boolean).join(": ")}`;
    }
    if (terminated?.exitCode) {
      const restarts = status.restartCount ? `, ${status.restartCount} restarts` : "";
      return `${status.name}: ${terminated.reason ?? "Error"}: it ended with ${terminated.exitCode}${restarts}`;
    }
  }
  return "";
}

/** Why no node has the pod: davit's sentence, which follows the one that every scheduler says; or that one, without its frame. */
function unscheduled(pod) {
  const condition = (pod.status?.conditions ?? []).find((c) => c.type === "PodScheduled" && c.status === "False");
  const message = condition?.message ?? "";
  const gates = pod.spec.schedulingGates ?? [];
  if (gates.length) return `its scheduling gate ${gates[0].name} is closed`;
  return /(?:still not schedulable|no new claims to deallocate)\. (.+)$/s.exec(message)?.[1]
    ?? message.replace(/^0\/\d+ nodes are available: /, "").replace(/\. (?:still not schedulable|no new claims to deallocate)\.?$/, "");
}

/** "main: example.com/gpu gpu0 Unhealthy", or "main: claim gpu Unhealthy": what a pod holds and is not well. */
function troubleOf(status) {
  const bad = new Set();
  for (const container of status?.containers ?? []) {
    for (const resource of container.resources) {
      for (const device of resource.devices) {
        if (device.health !== "Unhealthy") continue;
        const what = resource.resource.startsWith("claim:") ? resource.resource.replace(":", " ") : `${resource.resource} ${device.id}`;
        bad.add(`${container.container}: ${what} ${device.health}`);
      }
    }
  }
  return [...bad].join(", ");
}

export class Rows {
  constructor(model) {
    this.model = model;
  }

  // ---- claims ----

  /** The names of the claims that a pod uses. */
  static #claimsOf(pod) {
    const refs = [
      ...(pod.spec.resourceClaims ?? []), ...(pod.status?.resourceClaimStatuses ?? []), pod.status?.extendedResourceClaimStatus,
    ];
    return [...new Set(refs.map((ref) => ref?.resourceClaimName).filter(Boolean))];
  }

  /** "namespace/claim": the pods that use it. */
  #podsByClaim() {
    const pods = new Map();
    for (const pod of this.model.pods.values()) {
      for (const name of Rows.#claimsOf(pod)) {
        const key = nameOf(pod.metadata.namespace, name);
        if (!pods.has(key)) pods.set(key, []);
        pods.get(key).push(pod);
      }
    }
    return pods;
  }

  /** "namespace/claim": the newest event about it. */
  #eventsByClaim() {
    const events = new Map();
    for (const event of this.model.sortedEvents()) {
      const about = event.involvedObject;
      const key = nameOf(about?.namespace, about?.name);
      if (about?.kind === "ResourceClaim" && !events.has(key)) events.set(key, event);
    }
    return events;
  }

  /** Why an unallocated claim waits, by those who know. */
  static #whyPending(pods, event) {
    const reasons = [];
    for (const pod of pods) {
      const why = unscheduled(pod);
      if (why) reasons.push(`${pod.metadata.name}: ${why}`);
    }
    if (event) reasons.push(`${event.reason}: ${event.message}`);
    if (reasons.length) return [...new Set(reasons)].join("\n");
    return pods.length ? "not scheduled yet" : "no pod uses it";
  }

  /** Why an allocated claim has not come to the node yet: what the pods wait for that it is reserved for. */
  #whyNotHere(claim) {
    const names = new Set((claim.status.reservedFor ?? []).map((ref) => ref.name));
    return (this.model.node.pods ?? [])
      .filter(({ pod, awaited }) => awaited && pod.namespace === claim.metadata.namespace && names.has(pod.name))
      .map((status) => `${status.pod.name}: ${whyOnNode(status)}`).join("\n");
  }

  static #stateOf(claim) {
    if (claim.metadata.deletionTimestamp) return "terminating";
    return claim.status?.allocation ? "allocated" : "pending";
  }

  #whyOf(claim, node, pods, event) {
    const allocation = claim.status?.allocation;
    if (!node) return allocation ? this.#whyNotHere(claim) : Rows.#whyPending(pods, event);
    return node.error || (node.state === "wanted" && allocation && this.#whyNotHere(claim)) || waitsFor(node.awaited);
  }

  /** [{kind, space, name, state, devices, pods, since, why}], those that wait first. */
  claims() {
    const onNode = this.model.claimsOnNode();
    const podsOf = this.#podsByClaim();
    const eventOf = this.#eventsByClaim();
    const rows = [];
    for (const claim of this.model.claims.values()) {
      const { namespace: space, name } = claim.metadata;
      const key = nameOf(space, name);
      const node = onNode.get(key);
      const results = claim.status?.allocation?.devices?.results ?? [];
      const pods = podsOf.get(key) ?? [];
      const reserved = (claim.status?.reservedFor ?? []).map((ref) => ref.name);
      onNode.delete(key);
      rows.push({
        kind: "claim", space, name, state: node?.state ?? Rows.#stateOf(claim),
        devices: results.map((one) => ({ key: `${one.driver} ${one.pool} ${one.device}`, id: one.device })),
        pods: reserved.length ? reserved : pods.map((pod) => pod.metadata.name),
        since: Number(node?.since_ms) || Date.parse(claim.metadata.creationTimestamp),
        why: this.#whyOf(claim, node, pods, eventOf.get(key)),
      });
    }
    for (const claim of onNode.values()) { // the API does not have it, or does not show it to us
      rows.push({
        kind: "claim", space: claim.namespace, name: claim.name, state: claim.state,
        devices: claim.drivers.flatMap((driver) =>
          driver.devices.map((one) => ({ key: `${driver.name} ${one.pool} ${one.device}`, id: one.device }))),
        pods: claim.pods.map((pod) => pod.name || pod.uid), since: Number(claim.since_ms),
        why: claim.error || waitsFor(claim.awaited),
      });
    }
    return rows.sort((a, b) => Boolean(b.why) - Boolean(a.why) || compare(a.space, b.space) || compare(a.name, b.name));
  }

  // ---- pods ----

  /** Of a node, with those that no node has yet; without a name of all nodes. The newest first. */
  pods(nodeName) {
    const { model } = this;
    const isOwn = !nodeName || nodeName === model.node.node_name;
    const onNode = new Map((isOwn ? model.nodePods() : []).map((status) => [nameOf(status.pod.namespace, status.pod.name), status]));
    const rows = [];
    for (const pod of model.pods.values()) {
      const { namespace: space, name } = pod.metadata;
      const node = onNode.get(nameOf(space, name));
      if (!node && nodeName && pod.spec.nodeName && pod.spec.nodeName !== nodeName) continue;
      onNode.delete(nameOf(space, name));
      rows.push({
        kind: "pod", space, name, node: pod.spec.nodeName ?? "",
        phase: pod.metadata.deletionTimestamp ? "terminating" : pod.status?.phase ?? "Pending",
        state: node?.state ?? "", since: Number(node?.since_ms) || Date.parse(pod.metadata.creationTimestamp),
        why: Rows.#whyOfPod(pod, node),
      });
    }
    for (const status of onNode.values()) {
      rows.push({
        kind: "pod", space: status.pod.namespace, name: status.pod.name || status.pod.uid, node: model.node.node_name, phase: "",
        state: status.state, since: Number(status.since_ms), why: whyOnNode(status) || troubleOf(status),
      });
    }
    return rows.sort((a, b) => Boolean(b.why) - Boolean(a.why) || b.since - a.since || compare(a.name, b.name));
  }

  /** Why an image is not there yet says its container, when it was tried; the node says what is waited for. */
  static #whyOfPod(pod, node) {
    const own = [pod.status?.reason, pod.status?.message].filter(Boolean).join(": ");
    const told = containersSay(pod);
    return (node?.reason && whyOnNode(node)) || told || whyOnNode(node) || troubleOf(node) || unscheduled(pod) || own;
  }

  // ---- leases ----

  /** Who holds devices of this node without a pod, or waits for some. */
  leases() {
    return (this.model.node.leases ?? []).map((lease) => {
      const claimed = lease.claims.map((one) => ({ key: `${one.driver} ${one.pool} ${one.device}`, id: one.device }));
      const given = lease.resources.flatMap((one) => one.device_ids.map((id) => ({ key: `${one.resource} ${id}`, id })));
      let why = "";
      if (lease.place) why = `waits for ${lease.wanted}, ${lease.place} in the queue`;
      else if (lease.end_reason) why = `ends: ${lease.end_reason}`;
      return {
        kind: "lease", space: "", name: lease.id, state: lease.state, user: lease.user, command: lease.command.join(" "),
        devices: [...given, ...claimed], since: Number(lease.since_ms), ends: Number(lease.ends_ms), why,
      };
    });
  }

  /** All that waits, what has waited longest first. What the pod of a claim says already is not said again for the claim. */
  waiting(nodeName) {
    const pods = this.pods(nodeName).filter((row) => row.why);
    const told = new Set(pods.map((row) => `${row.space}/${row.name}: ${row.why}`));
    const claims = this.claims()
      .map((row) => {
        const isTold = (line) => told.has(`${row.space}/${line}`) || row.pods.some((pod) => told.has(`${row.space}/${pod}: ${line}`));
        return { ...row, why: (row.why || "").split("\n").filter((line) => line && !isTold(line)).join("\n") };
      })
      .filter((row) => row.why);
    const leases = this.leases().filter((row) => row.why);
    return [...pods, ...claims, ...leases].sort((a, b) => a.since - b.since || compare(a.name, b.name));
  }
}
