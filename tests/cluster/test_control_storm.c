/* The controllers over the engine for an API server, against our own, while the way between them
 * fails: claims come and go with their pods, and none is there twice. */
#include "support/dvtest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/proxy.h"
#include "cluster/remote.h"
#include "cluster/world.h"
#include "control/control.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "support/embedded_count.h"
#include "json/json.h"

/* How long the clock may be turned until all is done. A worker of a busy machine may not run for
 * thousands of turns. */
#define IDLE_MS 300000u
#define N_PODS 40u

struct storm {
    struct world *world;
    struct dv_control *control;
    size_t n_running;
    bool is_closed;
    size_t n_doubled;
};

struct asked {
    struct storm *storm;
    struct dv_request request;
    struct dv_arena *arena;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    struct asked *asked = DV_CONTAINER(request, struct asked, request);

    if (failure && failure->code != 404)
        fail_msg("%.*s", DV_FMT(failure->message));
    asked->storm->n_running--;
    dv_arena_free(asked->arena);
    free(asked);
}

static void ask(struct storm *storm, enum dv_verb verb, enum dv_subresource sub,
                enum dv_kind_id kind, const char *name, const char *yaml)
{
    const struct dv_message *message = dv_kind(kind)->versions[0].message;
    struct asked *asked = DV_ALLOC(struct asked);
    struct dv_err err;
    const struct dv_json *doc;

    asked->storm = storm;
    asked->arena = dv_arena_new();
    asked->request = (struct dv_request){
        .verb = verb, .subresource = sub, .kind = dv_kind(kind), .done = on_done};
    if (dv_kind(kind)->is_namespaced)
        asked->request.namespace = DV_STR("default");
    if (name)
        asked->request.name = dv_str_copy(dv_str_from_c(name), asked->arena);
    if (yaml) {
        doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, asked->arena, &err);
        assert_ok(doc, &err);
        if (verb == DV_VERB_PATCH) {
            asked->request.patch = doc;
            asked->request.patch_type = DV_PATCH_MERGE;
        } else {
            void *value = dv_arena_alloc(asked->arena, message->size, message->align);

            assert_ok(
                dv_decode_json(message, doc, DV_UNKNOWN_DROP, asked->arena, value, NULL, &err),
                &err);
            asked->request.value = value;
        }
    }
    if (verb == DV_VERB_DELETE) {
        static const int64_t none = 0;
        struct dv_api_delete_options *options = DV_NEW(asked->arena, struct dv_api_delete_options);

        options->grace_period_seconds = &none;
        asked->request.delete_options = options;
    }
    storm->n_running++;
    dv_request_start(dv_embedded_cluster(storm->world->embedded), &asked->request);
}

static bool is_idle(void *ctx)
{
    return ((struct storm *)ctx)->n_running == 0;
}

static size_t n_claims(struct storm *storm)
{
    return embedded_count(storm->world->embedded, dv_kind(DV_KIND_CLAIM));
}

static const struct dv_api_pod *pod_of(struct storm *storm, unsigned i)
{
    char name[16];
    struct dv_object *object;

    (void)snprintf(name, sizeof(name), "p%u", i);
    object = dv_embedded_get(storm->world->embedded, dv_kind(DV_KIND_POD), DV_STR("default"),
                             dv_str_from_c(name));
    return object ? object->value : NULL;
}

static bool all_have_claims(void *ctx)
{
    struct storm *storm = ctx;

    for (unsigned i = 0; i < N_PODS; i++) {
        const struct dv_api_pod *pod = pod_of(storm, i);

        if (!pod || pod->status.n_resource_claim_statuses != 2)
            return false;
    }
    return true;
}

static bool all_reserved(void *ctx)
{
    struct storm *storm = ctx;
    struct dv_list_query query = {.kind = dv_kind(DV_KIND_CLAIM),
                                  .version = &dv_kind(DV_KIND_CLAIM)->versions[0]};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_list_page page;
    struct dv_api_status *failure;

    assert_true(dv_embedded_list(storm->world->embedded, &query, arena, &page, &failure));
    for (size_t i = 0; i < page.n_objects; i++) {
        const struct dv_api_resource_claim *claim = dv_object_unpack(page.objects[i])->value;

        if (claim->status.allocation && claim->status.n_reserved_for != 1)
            return false;
    }
    return true;
}

static bool all_gone(void *ctx)
{
    return n_claims(ctx) == 0;
}

static bool is_closed(void *ctx)
{
    return ((struct storm *)ctx)->is_closed;
}

static void set_closed(void *ctx)
{
    ((struct storm *)ctx)->is_closed = true;
}

static void open_control(struct storm *storm)
{
    struct dv_control_options options = {.cluster = dv_remote_cluster(storm->world->remote),
                                         .gates = dv_control_gates_default()};
    struct dv_err err;

    storm->control = dv_control_open(storm->world->loop, &options, &err);
    assert_ok(storm->control, &err);
}

static void close_control(struct storm *storm)
{
    storm->is_closed = false;
    dv_control_close(storm->control, set_closed, storm);
    world_wait(storm->world, is_closed, storm, 120000);
}

static void run(uint64_t seed, const struct proxy_faults *faults, bool restarts)
{
    struct storm storm = {0};
    char yaml[600];
    struct dv_control_stats stats;

    storm.world = world_open(&(struct world_options){.seed = seed, .n_page_objects = 7});
    storm.world->proxy.faults = *faults;
    ask(&storm, DV_VERB_CREATE, DV_SUB_NONE, DV_KIND_TEMPLATE, NULL,
        "{metadata: {name: t}, spec: {spec: {devices: {requests: [{name: r, exactly: "
        "{deviceClassName: c}}]}}}}");
    open_control(&storm);
    for (unsigned i = 0; i < N_PODS; i++) {
        (void)snprintf(yaml, sizeof(yaml),
                       "{metadata: {name: p%u}, spec: {nodeName: n1, containers: [{name: c, image: "
                       "pause}], resourceClaims: [{name: e, resourceClaimTemplateName: t}, {name: "
                       "f, resourceClaimTemplateName: t}]}}",
                       i);
        ask(&storm, DV_VERB_CREATE, DV_SUB_NONE, DV_KIND_POD, NULL, yaml);
        world_turn(storm.world, 50);
        if (restarts && i % 10 == 9) {
            close_control(&storm);
            open_control(&storm);
        }
    }
    world_wait(storm.world, is_idle, &storm, IDLE_MS);
    world_wait(storm.world, all_have_claims, &storm, 600000);
    storm.n_doubled = n_claims(&storm) - 2 * N_PODS;
    for (unsigned i = 0; i < N_PODS; i++) {
        for (unsigned j = 0; j < 2; j++) {
            const struct dv_api_pod *pod = pod_of(&storm, i); /* until the next turn */
            char name[80];

            (void)snprintf(name, sizeof(name), "%.*s",
                           DV_FMT(pod->status.resource_claim_statuses[j].resource_claim_name));
            ask(&storm, DV_VERB_PATCH, DV_SUB_NONE, DV_KIND_CLAIM, name,
                "{metadata: {finalizers: [resource.kubernetes.io/delete-protection]}}");
            world_wait(storm.world, is_idle, &storm, IDLE_MS);
            (void)snprintf(yaml, sizeof(yaml),
                           "{status: {allocation: {devices: {results: [{request: r, driver: "
                           "d.example, pool: p, device: d%u}]}}}}",
                           i % 2);
            ask(&storm, DV_VERB_PATCH, DV_SUB_STATUS, DV_KIND_CLAIM, name, yaml);
            world_wait(storm.world, is_idle, &storm, IDLE_MS);
        }
    }
    world_wait(storm.world, all_reserved, &storm, 600000);
    ask(&storm, DV_VERB_CREATE, DV_SUB_NONE, DV_KIND_TAINT_RULE, NULL,
        "{metadata: {name: r}, spec: {deviceSelector: {device: d0}, taint: {key: k, effect: "
        "NoExecute}}}");
    world_wait(storm.world, is_idle, &storm, IDLE_MS);
    for (unsigned i = 0; i < N_PODS; i += 2)
        for (unsigned n = 0; !pod_of(&storm, i)->metadata.deletion_timestamp.is_set; n++) {
            world_turn(storm.world, 100);
            assert_true(n < 6000);
        }
    for (unsigned i = 1; i < N_PODS; i += 2)
        assert_false(pod_of(&storm, i)->metadata.deletion_timestamp.is_set);
    for (unsigned i = 0; i < N_PODS; i++) {
        (void)snprintf(yaml, sizeof(yaml), "p%u", i);
        if (i % 3)
            ask(&storm, DV_VERB_DELETE, DV_SUB_NONE, DV_KIND_POD, yaml, NULL);
        else
            ask(&storm, DV_VERB_PATCH, DV_SUB_STATUS, DV_KIND_POD, yaml,
                "{status: {phase: Succeeded}}");
    }
    world_wait(storm.world, all_gone, &storm, 600000);
    dv_control_get_stats(storm.control, &stats);
    print_message("    seed %llu: %zu doubled; %llu retries, %llu events dropped; %u cuts, %u "
                  "delays, %u refusals\n",
                  (unsigned long long)seed, storm.n_doubled, (unsigned long long)stats.n_retries,
                  (unsigned long long)stats.n_events_dropped, storm.world->proxy.n_cuts,
                  storm.world->proxy.n_delays, storm.world->proxy.n_refusals);
    close_control(&storm);
    world_close(storm.world);
}

static void on_a_good_day(void **state)
{
    (void)state;
    run(1, &(struct proxy_faults){0}, false);
    run(2, &(struct proxy_faults){0}, true);
}

static void when_all_is_slow(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++)
        run(seed, &(struct proxy_faults){.delay = 300, .delay_ms = 3000}, false);
}

static void when_connections_are_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++)
        run(seed, &(struct proxy_faults){.cut = 20, .delay = 50, .delay_ms = 2000, .refuse = 100},
            seed % 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_good_day),
        cmocka_unit_test(when_all_is_slow),
        cmocka_unit_test(when_connections_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
