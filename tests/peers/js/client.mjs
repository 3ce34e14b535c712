// A client of the Kubernetes API on @kubernetes/client-node:  client.mjs KUBECONFIG SCENARIO
//
// Prints "ok SCENARIO" and exits with 0, or "FAIL SCENARIO: reason" and exits with 1.
import assert from "node:assert/strict";
import { Readable, Writable } from "node:stream";

import * as k8s from "@kubernetes/client-node";

const PATIENCE_MS = 60000;
const NAMESPACE = "default";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(condition, what) {
    const end = Date.now() + PATIENCE_MS;
    while (!(await condition())) {
        assert.ok(Date.now() < end, `not in time: ${what}`);
        await sleep(5);
    }
}

async function refused(code, promise) {
    try {
        await promise;
    } catch (error) {
        assert.equal(error.code, code, error.message);
        return;
    }
    assert.fail(`was to be refused with ${code}`);
}

const claim = (name) => ({
    metadata: { name, labels: { app: "a" } },
    spec: { devices: { requests: [{ name: "r", exactly: { deviceClassName: "gpu" } }] } },
});

const slice = (name, nodeName) => ({
    metadata: { name },
    spec: {
        driver: "gpu.example.com",
        nodeName,
        pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
        devices: [{ name: "d0", attributes: { model: { string: "a" } }, capacity: { memory: { value: "1Gi" } } }],
    },
});

const map = (name, data = {}) => ({ metadata: { name }, data });

// Makes, reads, changes, patches and deletes claims, slices and pods through the typed interfaces.
async function crud(config) {
    const resource = config.makeApiClient(k8s.ResourceV1Api);
    const core = config.makeApiClient(k8s.CoreV1Api);
    await resource.createDeviceClass({ body: { metadata: { name: "gpu" }, spec: {} } });
    const made = await resource.createNamespacedResourceClaim({ namespace: NAMESPACE, body: claim("c1") });
    assert.ok(made.metadata.uid);
    assert.equal(made.spec.devices.requests[0].exactly.allocationMode, "ExactCount");
    await refused(409, resource.createNamespacedResourceClaim({ namespace: NAMESPACE, body: claim("c1") }));
    const at = { name: "c1", namespace: NAMESPACE };
    const got = await resource.readNamespacedResourceClaim(at);
    got.metadata.labels.app = "b";
    const changed = await resource.replaceNamespacedResourceClaim({ ...at, body: got });
    assert.ok(BigInt(changed.metadata.resourceVersion) > BigInt(made.metadata.resourceVersion));
    await refused(409, resource.replaceNamespacedResourceClaim({ ...at, body: got }));
    changed.status = {
        allocation: { devices: { results: [{ request: "r", driver: "gpu.example.com", pool: "n1", device: "d0" }] } },
        reservedFor: [{ resource: "pods", name: "p", uid: "u" }],
    };
    const status = await resource.replaceNamespacedResourceClaimStatus({ ...at, body: changed });
    assert.equal(status.status.reservedFor[0].uid, "u");
    for (const [type, body] of [
        [k8s.PatchStrategy.MergePatch, { metadata: { labels: { app: "c" } } }],
        [k8s.PatchStrategy.StrategicMergePatch, { metadata: { labels: { app: "d" } } }],
        [k8s.PatchStrategy.JsonPatch, [{ op: "replace", path: "/metadata/labels/app", value: "e" }]],
    ]) {
        const options = k8s.setHeaderOptions("Content-Type", type);
        await resource.patchNamespacedResourceClaim({ ...at, body }, options);
    }
    const applied = await resource.patchNamespacedResourceClaim(
        { ...at, body: { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name: "c1", labels: { mine: "1" } } }, fieldManager: "js" },
        k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.ServerSideApply),
    );
    assert.deepEqual(applied.metadata.labels, { app: "e", mine: "1" });
    for (const number of [1, 2, 3]) await resource.createResourceSlice({ body: slice(`s${number}`, `n${number % 2}`) });
    const some = await resource.listResourceSlice({ fieldSelector: "spec.nodeName=n1" });
    assert.deepEqual(some.items.map((item) => item.metadata.name), ["s1", "s3"]);
    const page = await resource.listResourceSlice({ limit: 2 });
    const rest = await resource.listResourceSlice({ limit: 2, _continue: page.metadata._continue });
    assert.equal(page.items.length + rest.items.length, 3);
    await resource.deleteCollectionResourceSlice({ fieldSelector: "spec.nodeName=n1" });
    assert.equal((await resource.listResourceSlice({})).items.length, 1);
    await core.createNamespacedPod({ namespace: NAMESPACE, body: { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } } });
    assert.equal((await core.readNamespacedPod({ name: "p", namespace: NAMESPACE })).status.phase, "Pending");
    await refused(422, core.createNamespacedPod({ namespace: NAMESPACE, body: { metadata: { name: "q" }, spec: { containers: [] } } }));
    await core.deleteNamespacedPod({ name: "p", namespace: NAMESPACE });
    await refused(404, core.readNamespacedPod({ name: "p", namespace: NAMESPACE }));
    await resource.deleteNamespacedResourceClaim(at);
    await refused(404, resource.readNamespacedResourceClaim(at));
}

// The untyped interface, which finds paths by discovery.
async function objects(config) {
    const api = k8s.KubernetesObjectApi.makeApiClient(config);
    const thing = { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", ...claim("c1") };
    thing.metadata.namespace = NAMESPACE;
    await api.create(thing);
    const got = await api.read(thing);
    got.metadata.annotations = { x: "y" };
    await api.replace(got);
    await api.patch({ ...thing, metadata: { ...thing.metadata, labels: { app: "z" } } });
    const listed = await api.list("resource.k8s.io/v1", "ResourceClaim", NAMESPACE);
    assert.equal(listed.items[0].metadata.labels.app, "z");
    await api.delete(thing);
    await refused(404, api.read(thing));
}

// Events come in order, from the version of a list on.
async function watch(config) {
    const core = config.makeApiClient(k8s.CoreV1Api);
    await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: map("before") });
    const { metadata } = await core.listNamespacedConfigMap({ namespace: NAMESPACE });
    const seen = [];
    let end;
    const ended = new Promise((resolve) => (end = resolve));
    const stream = await new k8s.Watch(config).watch(
        `/api/v1/namespaces/${NAMESPACE}/configmaps`,
        { resourceVersion: metadata.resourceVersion, allowWatchBookmarks: true },
        (type, object) => seen.push(`${type} ${object.metadata.name}`),
        end,
    );
    for (let number = 0; number < 50; number++)
        await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: map(`m${number}`) });
    await core.deleteNamespacedConfigMap({ name: "m7", namespace: NAMESPACE });
    await until(() => seen.length >= 51, "51 events");
    assert.deepEqual(seen, [...Array(50).keys()].map((number) => `ADDED m${number}`).concat("DELETED m7"));
    stream.abort();
    await ended;
}

// Ends up with what is stored, while others write.
async function informer(config) {
    const core = config.makeApiClient(k8s.CoreV1Api);
    const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
    const list = () => core.listNamespacedConfigMap({ namespace: NAMESPACE });
    await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: map("before") });
    const known = k8s.makeInformer(config, path, list);
    const counts = { add: 0, update: 0, delete: 0 };
    for (const event of Object.keys(counts)) known.on(event, () => counts[event]++);
    const troubles = [];
    known.on("error", (error) => troubles.push(error));
    await known.start();
    const write = async (writer) => {
        for (let number = 0; number < 40; number++) {
            const name = `w${writer}-${number}`;
            await core.createNamespacedConfigMap({ namespace: NAMESPACE, body: map(name) });
            await core.patchNamespacedConfigMap(
                { name, namespace: NAMESPACE, body: { data: { n: String(number) } } },
                k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch),
            );
            if (number % 3 === 0) await core.deleteNamespacedConfigMap({ name, namespace: NAMESPACE });
        }
    };
    await Promise.all([0, 1, 2, 3].map(write));
    const versions = (items) => items.map((item) => `${item.metadata.name} ${item.metadata.resourceVersion}`).sort();
    const stored = versions((await list()).items);
    await until(() => versions(known.list(NAMESPACE)).join() === stored.join(), "an informer that knows what is stored");
    assert.deepEqual(counts, { add: 161, update: 160, delete: 56 });
    assert.deepEqual(troubles, []);
    await known.stop();
}

// What is too old is told as 410, once; the informer lists anew by itself.
async function gone(config) {
    const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
    const errors = [];
    await new Promise((resolve) => {
        new k8s.Watch(config).watch(path, { resourceVersion: "1" }, (type, object) => errors.push([type, object.code]), resolve);
    });
    assert.deepEqual(errors, [["ERROR", 410]]);
}

// A stream that keeps what is written to it.
class Kept extends Writable {
    text = "";
    _write(chunk, _encoding, done) {
        this.text += chunk;
        done();
    }
}

// Runs a command in the pod "p" and returns what it printed, and its end as the server tells it.
async function run(config, command, input) {
    const [out, err] = [new Kept(), new Kept()];
    const status = await new Promise((resolve, reject) => {
        new k8s.Exec(config)
            .exec(NAMESPACE, "p", "main", command, out, err, input ?? null, false, resolve)
            .then((socket) => socket.on("error", reject), reject);
    });
    return { out: out.text, err: err.text, status };
}

// Commands and logs of the pod "p", whose container prints "begun" and sleeps.
async function streams(config) {
    const good = await run(config, ["sh", "-c", "echo out; echo err >&2"]);
    assert.deepEqual([good.out, good.err, good.status.status], ["out\n", "err\n", "Success"]);
    const bad = await run(config, ["sh", "-c", "exit 5"]);
    assert.equal(bad.status.status, "Failure");
    assert.equal(bad.status.details.causes[0].message, "5");
    const line = await run(config, ["head", "-n", "1"], Readable.from(["first\n"]));
    assert.equal(line.out, "first\n");
    const log = new Kept();
    const following = await new k8s.Log(config).log(NAMESPACE, "p", "main", log, { follow: true });
    await until(() => log.text === "begun\n", "the log");
    following.abort();
}

const scenarios = { crud, objects, watch, informer, gone, streams };
const [file, name] = process.argv.slice(2);
const config = new k8s.KubeConfig();
config.loadFromFile(file);
try {
    await scenarios[name](config);
    console.log(`ok ${name}`);
    process.exit(0);
} catch (error) {
    console.log(`FAIL ${name}: ${error.stack ?? error}`);
    process.exit(1);
}
