/* test_agent_ask.c - what the tests of the agent ask of the API and of the node. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "claim/claim.h"
#include "claim/claim_manager.h"
#include "cluster/embedded.h"
#include "device/device.h"
#include "device/device_manager.h"
#include "loop/loop.h"
#include "pod/agent/bare_status.h"
#include "pod/tests/test_agent_host.h"
#include "store/store.h"
#include "support/dvtest.h"
#include "json/json.h"

/* Virtual time that anything may take, in steps. */
#define STEP_MS 100u
#define N_STEPS 1500

/* ---- requests ---- */

struct asking {
    struct dv_request request;
    struct world *world;
    struct dv_object *object;
    bool is_done;
};

static void on_answered(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asking *asking = DV_CONTAINER(request, struct asking, request);

    if (failure)
        fail_msg("%.*s: %lld %.*s", DV_FMT(request->name), (long long)failure->code,
                 DV_FMT(failure->message));
    asking->object = request->object;
    asking->is_done = true;
}

static bool is_answered(void *ctx)
{
    return ((const struct asking *)ctx)->is_done;
}

static struct dv_object *ask(struct world *world, struct asking *asking)
{
    asking->request.done = on_answered;
    dv_request_start(dv_embedded_cluster(world->api), &asking->request);
    assert_true(dv_loop_run_until(world->loop, is_answered, asking, 20000));
    return asking->object;
}

static struct dv_json *json_of(struct world *world, const char *json)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(json), NULL, world->arena, &err);

    if (!doc)
        fail_msg("%s: %s", json, err.msg);
    return doc;
}

static dv_str namespace_of(enum dv_kind_id kind)
{
    return dv_kind(kind)->is_namespaced ? DV_STR("default") : DV_STR("");
}

struct dv_object *create(struct world *world, enum dv_kind_id kind, const char *json)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    struct asking asking = {
        .request = {
                    .verb = DV_VERB_CREATE, .kind = dv_kind(kind), .namespace = namespace_of(kind)}
    };
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct dv_err err;

    assert_ok(dv_decode_json(message, json_of(world, json), DV_UNKNOWN_DROP, world->arena, value,
                             NULL, &err),
              &err);
    asking.request.value = value;
    return ask(world, &asking);
}

void patch(struct world *world, enum dv_kind_id kind, const char *name, enum dv_subresource sub,
           const char *json)
{
    struct asking asking = {
        .request = {.verb = DV_VERB_PATCH,
                    .kind = dv_kind(kind),
                    .subresource = sub,
                    .namespace = namespace_of(kind),
                    .name = dv_str_from_c(name),
                    .patch_type = DV_PATCH_MERGE,
                    .patch = json_of(world, json)}
    };

    (void)ask(world, &asking); /* it has not failed */
}

void delete_object(struct world *world, enum dv_kind_id kind, const char *name, int64_t grace_s)
{
    struct dv_api_delete_options options = {.grace_period_seconds = grace_s < 0 ? NULL : &grace_s};
    struct asking asking = {
        .request = {.verb = DV_VERB_DELETE,
                    .kind = dv_kind(kind),
                    .namespace = namespace_of(kind),
                    .name = dv_str_from_c(name),
                    .delete_options = &options}
    };

    (void)ask(world, &asking); /* it has not failed */
}

void delete_pod(struct world *world, const char *name, int64_t grace_s)
{
    delete_object(world, DV_KIND_POD, name, grace_s);
}

const struct dv_api_pod *pod_of(const struct world *world, const char *name)
{
    const struct dv_object *object =
        dv_embedded_get(world->api, dv_kind(DV_KIND_POD), DV_STR("default"), dv_str_from_c(name));

    return object ? object->value : NULL;
}

const char *uid_of(const struct world *world, const char *name)
{
    const struct dv_api_pod *pod = pod_of(world, name);

    return pod ? dv_str_to_c(pod->metadata.uid, world->arena) : "-";
}

/* ---- pods and claims ---- */

void create_pod(struct world *world, const char *name, int n_gpus, const char *claim)
{
    const char *claims =
        claim ? text(world, "resourceClaims: [{name: g, resourceClaimName: %s}], ", claim) : "";

    (void)create(world, DV_KIND_POD,
                 text(world,
                      "{metadata: {name: %s}, spec: {nodeName: " NODE ", %scontainers: [{name: c, "
                      "image: x, resources: {%s limits: {%s}}}]}}",
                      name, claims, claim ? "claims: [{name: g}], " : "",
                      n_gpus > 0 ? text(world, GPU ": \"%d\"", n_gpus) : ""));
}

void create_pod_with(struct world *world, const char *name, const char *metadata)
{
    (void)create(world, DV_KIND_POD,
                 text(world,
                      "{metadata: {name: %s, %s}, spec: {nodeName: " NODE ", containers: [{name: "
                      "c, image: x}]}}",
                      name, metadata));
}

void create_claim(struct world *world, const char *name)
{
    (void)create(world, DV_KIND_CLAIM,
                 text(world,
                      "{metadata: {name: %s}, spec: {devices: {requests: [{name: r, exactly: "
                      "{deviceClassName: gpu}}]}}}",
                      name));
}

void allocate_claim(struct world *world, const char *name, const char *pod)
{
    patch(world, DV_KIND_CLAIM, name, DV_SUB_STATUS,
          text(world,
               "{status: {allocation: {devices: {results: [{request: r, driver: " DRIVER
               ", pool: pool, device: dev}]}}, reservedFor: [{resource: pods, name: %s, uid: "
               "\"%s\"}]}}",
               pod, uid_of(world, pod)));
}

/* ---- what is ---- */

static const struct dv_api_pod_condition *condition_of(const struct dv_api_pod_status *status,
                                                       const char *type)
{
    for (size_t i = 0; i < status->n_conditions; i++)
        if (dv_str_eq(status->conditions[i].type, dv_str_from_c(type)))
            return &status->conditions[i];
    return NULL;
}

static dv_str reason_of(const struct dv_api_pod_status *status)
{
    const struct dv_api_pod_condition *ready = condition_of(status, "Ready");
    const struct dv_api_pod_condition *devices = condition_of(status, DV_DEVICES_READY);

    if (status->reason.n > 0)
        return status->reason;
    if (devices && dv_str_eq(status->phase, DV_STR("Pending")))
        return dv_str_eq(devices->status, DV_STR("True")) ? DV_STR("DevicesReady")
                                                          : devices->reason;
    return ready ? ready->reason : DV_STR("");
}

const char *phase_of(struct world *world, const char *name)
{
    const struct dv_api_pod *pod = pod_of(world, name);
    dv_str reason;

    if (!pod)
        return "-";
    reason = reason_of(&pod->status);
    return text(world, "%.*s%s%.*s", DV_FMT(pod->status.phase), reason.n > 0 ? " " : "",
                DV_FMT(reason));
}

void expect(struct world *world, const char *pod, const char *phase)
{
    size_t n = world->log.n > 1500 ? 1500 : world->log.n;

    for (int i = 0; i < N_STEPS; i++) {
        settle(world);
        if (strcmp(phase_of(world, pod), phase) == 0)
            return;
        dv_clock_virtual_advance_ms(&world->clock, STEP_MS);
    }
    fail_msg("pod %s is \"%s\", not \"%s\"; log: ...%s", pod, phase_of(world, pod), phase,
             dv_buf_c(&world->log) + world->log.n - n);
}

static const char *ids_of(struct world *world, dv_str uid)
{
    const struct dv_device_record *records;
    size_t n = dv_device_records_of_pod(dv_device_manager_state(world->devices), uid, world->arena,
                                        &records);
    const char *ids = "";

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < records[i].n_placed; k++)
            for (size_t m = 0; m < records[i].placed[k].n_ids; m++)
                ids = text(world, "%s%s%.*s", ids, ids[0] ? "," : "",
                           DV_FMT(records[i].placed[k].ids[m]));
    return ids;
}

static const char *claims_of(struct world *world, dv_str uid)
{
    struct dv_claim **claims;
    size_t n = dv_claim_of_pod(dv_claim_manager_state(world->claims), uid, world->arena, &claims);
    const char *names = "";

    for (size_t i = 0; i < n; i++)
        names = text(world, "%s+%.*s", names, DV_FMT(claims[i]->record.name));
    return names;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *held(struct world *world)
{
    const char **all = DV_NEW_ARRAY(world->arena, const char *, dv_pods_count(world->pods));
    struct dv_pod_view view;
    const char *joined = "";
    size_t n = 0;

    for (size_t at = 0; dv_pods_next(world->pods, &at, &view);)
        all[n++] = text(world, "%.*s=%s%s ", DV_FMT(view.spec->ref.name),
                        ids_of(world, view.spec->ref.uid), claims_of(world, view.spec->ref.uid));
    if (n > 0)
        qsort(all, n, sizeof(all[0]), compare_text);
    for (size_t i = 0; i < n; i++)
        joined = text(world, "%s%s", joined, all[i]);
    return joined;
}

void expect_held(struct world *world, const char *wanted)
{
    for (int i = 0; i < N_STEPS; i++) {
        settle(world);
        if (fnmatch(wanted, held(world), 0) == 0)
            return;
        dv_clock_virtual_advance_ms(&world->clock, STEP_MS);
    }
    fail_msg("held is \"%s\", not \"%s\"", held(world), wanted);
}

/* ---- events ---- */

struct counting {
    dv_str reason;
    size_t n;
    const char *message;
    struct world *world;
    bool is_synced;
};

static void on_event(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct counting *counting = ctx;
    const struct dv_api_event *event = now ? now->value : NULL;

    (void)old;
    if (!event || !dv_str_eq(event->reason, counting->reason))
        return;
    counting->n += event->count > 0 ? (size_t)event->count : 1;
    counting->message =
        text(counting->world, "%s%.*s\n", counting->message, DV_FMT(event->message));
}

static void on_events(void *ctx)
{
    ((struct counting *)ctx)->is_synced = true;
}

static bool are_counted(void *ctx)
{
    return ((const struct counting *)ctx)->is_synced;
}

size_t n_events(struct world *world, const char *reason, const char **message)
{
    struct counting counting = {.reason = dv_str_from_c(reason), .message = "", .world = world};
    const struct dv_view_options options = {
        .kind = dv_kind(DV_KIND_EVENT), .changed = on_event, .synced = on_events, .ctx = &counting};
    struct dv_err err;
    struct dv_view *view = dv_view_open(dv_embedded_cluster(world->api), &options, &err);

    assert_ok(view, &err);
    assert_true(dv_loop_run_until(world->loop, are_counted, &counting, 20000));
    dv_view_close(view);
    if (message)
        *message = counting.message;
    return counting.n;
}

/* ---- by hand ---- */

struct by_hand {
    struct dv_pod_admission admission;
    struct dv_pod_release release;
    struct dv_pod_start start;
    struct dv_pod_telling telling;
    struct world *world;
    const char *error;
    bool is_done;
};

static bool is_by_hand_done(void *ctx)
{
    return ((const struct by_hand *)ctx)->is_done;
}

static void end_by_hand(struct by_hand *by_hand, const struct dv_err *err)
{
    by_hand->error = err ? text(by_hand->world, "%s", err->msg) : NULL;
    by_hand->is_done = true;
}

static void on_admitted(struct dv_pod_admission *admission, const struct dv_pod_verdict *verdict,
                        const struct dv_err *err)
{
    struct by_hand *by_hand = DV_CONTAINER(admission, struct by_hand, admission);

    end_by_hand(by_hand, err);
    if (!err && !verdict->is_admitted)
        by_hand->error = text(by_hand->world, "%s: %.*s", dv_pod_refusal_name(verdict->refusal),
                              DV_FMT(verdict->message));
}

const char *admit_by_hand(struct world *world, const char *json)
{
    struct by_hand by_hand = {.admission = {.done = on_admitted}, .world = world};
    struct dv_err err;
    struct dv_pod_input *input = dv_pod_input_parse(dv_str_from_c(json), &err);

    if (!input)
        return text(world, "%s", err.msg);
    dv_pods_admit(world->pods, &by_hand.admission, input, 0);
    assert_true(dv_loop_run_until(world->loop, is_by_hand_done, &by_hand, 20000));
    return by_hand.error;
}

static void on_started(struct dv_pod_start *start, const struct dv_err *err)
{
    end_by_hand(DV_CONTAINER(start, struct by_hand, start), err);
}

const char *start_by_hand(struct world *world, const char *pod)
{
    struct by_hand by_hand = {.start = {.done = on_started}, .world = world};
    const struct dv_pod_ref ref = {.name = dv_str_from_c(pod)};

    dv_pods_start_container(world->pods, &by_hand.start, &ref, DV_STR("c"));
    assert_true(dv_loop_run_until(world->loop, is_by_hand_done, &by_hand, 20000));
    return by_hand.error;
}

static void on_told(struct dv_pod_telling *telling, const struct dv_err *err)
{
    end_by_hand(DV_CONTAINER(telling, struct by_hand, telling), err);
}

const char *tell_started(struct world *world, const char *pod, const char *container, pid_t pid)
{
    struct by_hand by_hand = {.telling = {.done = on_told}, .world = world};
    const struct dv_pod_ref ref = {.name = dv_str_from_c(pod)};

    dv_pods_tell_started(world->pods, &by_hand.telling, &ref, dv_str_from_c(container),
                         (uint32_t)pid);
    assert_true(dv_loop_run_until(world->loop, is_by_hand_done, &by_hand, 20000));
    return by_hand.error;
}

const char *tell_ended(struct world *world, const char *pod, const char *container, int32_t code)
{
    struct by_hand by_hand = {.telling = {.done = on_told}, .world = world};
    const struct dv_pod_ref ref = {.name = dv_str_from_c(pod)};

    dv_pods_tell_ended(world->pods, &by_hand.telling, &ref, dv_str_from_c(container), code,
                       DV_STR("bye"));
    assert_true(dv_loop_run_until(world->loop, is_by_hand_done, &by_hand, 20000));
    return by_hand.error;
}

static void on_released(struct dv_pod_release *release, bool was_known, const struct dv_err *err)
{
    (void)was_known;
    end_by_hand(DV_CONTAINER(release, struct by_hand, release), err);
}

const char *release_by_hand(struct world *world, const char *pod)
{
    struct by_hand by_hand = {.release = {.done = on_released}, .world = world};
    const struct dv_pod_ref ref = {.name = dv_str_from_c(pod)};

    dv_pods_release(world->pods, &by_hand.release, &ref);
    assert_true(dv_loop_run_until(world->loop, is_by_hand_done, &by_hand, 20000));
    return by_hand.error;
}

/* ---- the store ---- */

struct writing {
    struct dv_store_write write;
    bool is_done;
};

static void on_written(struct dv_store_write *write, const struct dv_err *err)
{
    assert_null(err);
    DV_CONTAINER(write, struct writing, write)->is_done = true;
}

static bool is_written(void *ctx)
{
    return ((const struct writing *)ctx)->is_done;
}

void put_pod(struct world *world, const char *uid, dv_str row)
{
    const struct dv_store_change change = {
        .kind = DV_STORE_PUT, .table = DV_TABLE_PODS, .key = dv_str_from_c(uid), .value = row};
    struct writing writing = {.write = {.done = on_written}};

    dv_store_write(world->store, &writing.write, &change, 1);
    assert_true(dv_loop_run_until(world->loop, is_written, &writing, 20000));
}
