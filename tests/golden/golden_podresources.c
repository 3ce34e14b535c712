/* golden_podresources.c - replays golden/podresources: every answer of every state, twice.
 *
 *     golden_podresources DIR      DIR holds states.jsonl
 *
 * First strictly (dv_podres_node.is_strict), when each answer is the reference's, then as davit
 * answers by default, when the reference's answer is first changed by those `rules` that apply to
 * it. Answers are compared as bytes. The recorded ones are put into davit's order where the README
 * calls an order arbitrary: pods, devices, the drivers of a claim. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "files.h"
#include "pb/pb.h"
#include "pb_json.h"
#include "podresources_state.h"
#include "proto/podresources_v1.pb-c.h"
#include "proto/podresources_v1alpha1.pb-c.h"
#include "serve/podresources/podres_answer.h"

/* Where davit differs on purpose. */
enum rule {
    OWN_CDI_IDS,
    EMPTY_TOPOLOGY,
    ONLY_ACTIVE,
};

static const char *const rules[] = {
    [OWN_CDI_IDS] = "cdi_devices has the device's own ids, not those of the devices before it",
    [EMPTY_TOPOLOGY] = "a topology without nodes is none: such a device is allocatable, too",
    [ONLY_ACTIVE] = "Get finds active pods only",
};

struct score {
    unsigned n_passed;
    unsigned n_failed;
    unsigned n_by_rule[DV_COUNT(rules)]; /* answers that differ from the reference's by it */
};

struct replay {
    struct state state;
    struct score *score;
};

static void free_json(json_t **json)
{
    json_decref(*json);
}

/* -- Rules ---------------------------------------------------------------------------------- */

/* Takes off what the device before, of the same driver, has. True when that was something. */
static bool keep_own_cdi_ids(const PodresV1__DynamicResource *claim)
{
    bool has_changed = false;

    for (size_t i = claim->n_claim_resources; i-- > 0;) {
        PodresV1__ClaimResource *device = claim->claim_resources[i];
        size_t before = i;

        while (before > 0 &&
               strcmp(claim->claim_resources[before - 1]->driver_name, device->driver_name) != 0)
            before--;
        if (before == 0 || claim->claim_resources[before - 1]->n_cdi_devices == 0)
            continue;
        device->cdi_devices += claim->claim_resources[before - 1]->n_cdi_devices;
        device->n_cdi_devices -= claim->claim_resources[before - 1]->n_cdi_devices;
        has_changed = true;
    }
    return has_changed;
}

static void rule_pods(struct replay *replay, PodresV1__PodResources *const *pods, size_t n_pods)
{
    bool has_changed = false;

    for (size_t i = 0; i < n_pods; i++)
        for (size_t k = 0; k < pods[i]->n_containers; k++)
            for (size_t m = 0; m < pods[i]->containers[k]->n_dynamic_resources; m++)
                has_changed |= keep_own_cdi_ids(pods[i]->containers[k]->dynamic_resources[m]);
    replay->score->n_by_rule[OWN_CDI_IDS] += has_changed;
}

static void rule_allocatable(struct replay *replay,
                             PodresV1__AllocatableResourcesResponse *response)
{
    struct dv_arena *arena = replay->state.arena;
    const struct state_device *hidden;
    size_t n = state_without_nodes(&replay->state, &hidden);
    PodresV1__ContainerDevices **devices =
        DV_NEW_ARRAY(arena, PodresV1__ContainerDevices *, response->n_devices + n);

    for (size_t i = 0; i < response->n_devices; i++)
        devices[i] = response->devices[i];
    for (size_t i = 0; i < n; i++) {
        PodresV1__ContainerDevices *device = DV_NEW(arena, PodresV1__ContainerDevices);

        podres_v1__container_devices__init(device);
        device->resource_name = dv_str_to_c(hidden[i].resource, arena);
        device->device_ids = DV_NEW_ARRAY(arena, const char *, 1);
        device->device_ids[device->n_device_ids++] = dv_str_to_c(hidden[i].id, arena);
        devices[response->n_devices++] = device;
    }
    response->devices = devices;
    replay->score->n_by_rule[EMPTY_TOPOLOGY] += n > 0;
}

/* -- Order ---------------------------------------------------------------------------------- */

static int64_t node_of(const PodresV1__ContainerDevices *device)
{
    return device->topology && device->topology->n_nodes > 0 ? device->topology->nodes[0]->id : -1;
}

static int compare_devices(const void *a, const void *b)
{
    const PodresV1__ContainerDevices *x = *(PodresV1__ContainerDevices *const *)a;
    const PodresV1__ContainerDevices *y = *(PodresV1__ContainerDevices *const *)b;
    int order = strcmp(x->resource_name, y->resource_name);

    if (order == 0)
        order = strcmp(x->device_ids[0], y->device_ids[0]);
    return order ? order : (node_of(x) > node_of(y)) - (node_of(x) < node_of(y));
}

static int compare_alpha_devices(const void *a, const void *b)
{
    const PodresV1alpha1__ContainerDevices *x = *(PodresV1alpha1__ContainerDevices *const *)a;
    const PodresV1alpha1__ContainerDevices *y = *(PodresV1alpha1__ContainerDevices *const *)b;
    int order = strcmp(x->resource_name, y->resource_name);

    return order ? order : strcmp(x->device_ids[0], y->device_ids[0]);
}

static int compare_pods(const void *a, const void *b)
{
    const PodresV1__PodResources *x = *(PodresV1__PodResources *const *)a;
    const PodresV1__PodResources *y = *(PodresV1__PodResources *const *)b;
    int order = strcmp(x->namespace_, y->namespace_);

    return order ? order : strcmp(x->name, y->name);
}

static int compare_alpha_pods(const void *a, const void *b)
{
    const PodresV1alpha1__PodResources *x = *(PodresV1alpha1__PodResources *const *)a;
    const PodresV1alpha1__PodResources *y = *(PodresV1alpha1__PodResources *const *)b;
    int order = strcmp(x->namespace_, y->namespace_);

    return order ? order : strcmp(x->name, y->name);
}

static void sort(void *v, size_t n, int (*compare)(const void *a, const void *b))
{
    if (n > 0)
        qsort(v, n, sizeof(void *), compare);
}

/* By driver; the devices of one keep their order, which is not arbitrary. */
static void arrange_claim(PodresV1__DynamicResource *claim)
{
    PodresV1__ClaimResource **v = claim->claim_resources;

    for (size_t i = 1; i < claim->n_claim_resources; i++) {
        PodresV1__ClaimResource *one = v[i];
        size_t at = i;

        for (; at > 0 && strcmp(v[at - 1]->driver_name, one->driver_name) > 0; at--)
            v[at] = v[at - 1];
        v[at] = one;
    }
}

static void arrange_pods(PodresV1__PodResources **pods, size_t n_pods)
{
    sort(pods, n_pods, compare_pods);
    for (size_t i = 0; i < n_pods; i++)
        for (size_t k = 0; k < pods[i]->n_containers; k++) {
            PodresV1__ContainerResources *container = pods[i]->containers[k];

            sort(container->devices, container->n_devices, compare_devices);
            for (size_t m = 0; m < container->n_dynamic_resources; m++)
                arrange_claim(container->dynamic_resources[m]);
        }
}

/* -- Comparing ------------------------------------------------------------------------------ */

static dv_str encode(const ProtobufCMessage *message, struct dv_arena *arena)
{
    size_t n = dv_pb_size(message);
    char *bytes = dv_arena_alloc(arena, n, 1);

    dv_pb_encode(message, bytes, n);
    return (dv_str){bytes, n};
}

static void conclude(struct replay *replay, const char *what, bool is_right,
                     const struct dv_err *err)
{
    if (is_right) {
        replay->score->n_passed++;
        return;
    }
    replay->score->n_failed++;
    printf("%s: %s%s: %s\n", json_string_value(json_object_get(replay->state.json, "id")), what,
           replay->state.node.is_strict ? ", strictly" : "", err->msg);
}

/* Its two forms, JSON and bytes, must be one message to us, too. */
static bool is_one_message(const ProtobufCMessage *message, json_t *json, dv_str bytes,
                           struct dv_arena *arena, struct dv_err *err)
{
    DV_CLEANUP(free_json) json_t *own = pb_to_json(message);

    if (!json_compare(own, json, err))
        return dv_wrap(err, "recorded %s", message->descriptor->name);
    if (!dv_str_eq(encode(message, arena), bytes))
        return dv_fail(err, DV_INTERNAL, "recorded %s: is encoded differently",
                       message->descriptor->name);
    return true;
}

static void *recorded(const struct replay *replay, const ProtobufCMessageDescriptor *type,
                      const json_t *answer)
{
    struct dv_arena *arena = replay->state.arena;
    dv_str bytes = state_bytes(&replay->state, json_object_get(answer, "protobuf_hex"));
    struct dv_err err;
    void *message = dv_pb_decode(type, bytes, arena, &err);

    state_must(&replay->state,
               message &&
                   is_one_message(message, json_object_get(answer, "json"), bytes, arena, &err),
               &err);
    return message;
}

static void compare(struct replay *replay, const char *what, const ProtobufCMessage *got,
                    const ProtobufCMessage *want)
{
    struct dv_arena *arena = replay->state.arena;
    DV_CLEANUP(free_json) json_t *got_json = pb_to_json(got);
    DV_CLEANUP(free_json) json_t *want_json = pb_to_json(want);
    struct dv_err err = {.code = DV_INTERNAL, .msg = "the same JSON has other bytes"};
    bool is_right = json_compare(got_json, want_json, &err) &&
                    dv_str_eq(encode(got, arena), encode(want, arena));

    conclude(replay, what, is_right, &err);
}

/* -- Calls ---------------------------------------------------------------------------------- */

static void compare_not_found(struct replay *replay, const char *what,
                              const PodresV1__GetPodResourcesResponse *got,
                              const struct dv_err *got_err, dv_str want)
{
    struct dv_err err;

    if (got)
        (void)dv_fail(&err, DV_INTERNAL, "got an answer, want \"%.*s\"", DV_FMT(want));
    else
        (void)dv_fail(&err, DV_INTERNAL, "got %s \"%s\", want \"%.*s\"",
                      dv_code_name(got_err->code), got_err->msg, DV_FMT(want));
    conclude(replay, what,
             !got && got_err->code == DV_UNKNOWN && dv_str_eq(dv_str_from_c(got_err->msg), want),
             &err);
}

static void replay_get(struct replay *replay, const char *what, const json_t *record)
{
    struct dv_arena *arena = replay->state.arena;
    const json_t *request = json_object_get(record, "request");
    const json_t *error = json_object_get(record, "error");
    dv_str namespace = state_text(request, "pod_namespace");
    dv_str name = state_text(request, "pod_name");
    struct dv_err err;
    PodresV1__GetPodResourcesResponse *got =
        dv_podres_get(&replay->state.node, namespace, name, arena, &err);
    PodresV1__GetPodResourcesResponse *want;

    if (error) {
        compare_not_found(replay, what, got, &err, state_text(error, "message"));
        return;
    }
    want = recorded(replay, &podres_v1__get_pod_resources_response__descriptor,
                    json_object_get(record, "response"));
    if (!replay->state.node.is_strict && !state_is_active(&replay->state, name)) {
        replay->score->n_by_rule[ONLY_ACTIVE]++;
        compare_not_found(replay, what, got, &err,
                          dv_str_printf(arena, "pod %.*s in namespace %.*s not found", DV_FMT(name),
                                        DV_FMT(namespace)));
        return;
    }
    if (!got) {
        conclude(replay, what, false, &err);
        return;
    }
    if (!replay->state.node.is_strict)
        rule_pods(replay, &want->pod_resources, 1);
    arrange_pods(&want->pod_resources, 1);
    compare(replay, what, &got->base, &want->base);
}

static void replay_gets(struct replay *replay, const char *what, const json_t *records)
{
    for (size_t i = 0; i < json_array_size(records); i++)
        replay_get(replay, what, json_array_get(records, i));
}

static void replay_allocatable(struct replay *replay, const json_t *answer)
{
    PodresV1__AllocatableResourcesResponse *want =
        recorded(replay, &podres_v1__allocatable_resources_response__descriptor, answer);

    if (!replay->state.node.is_strict)
        rule_allocatable(replay, want);
    sort(want->devices, want->n_devices, compare_devices);
    compare(replay, "GetAllocatableResources",
            &dv_podres_allocatable(&replay->state.node, replay->state.arena)->base, &want->base);
}

static void replay_list(struct replay *replay, const json_t *answer)
{
    PodresV1__ListPodResourcesResponse *want =
        recorded(replay, &podres_v1__list_pod_resources_response__descriptor, answer);

    (void)dv_device_collect(replay->state.devices); /* as the server does */
    if (!replay->state.node.is_strict)
        rule_pods(replay, want->pod_resources, want->n_pod_resources);
    arrange_pods(want->pod_resources, want->n_pod_resources);
    compare(replay, "List", &dv_podres_list(&replay->state.node, replay->state.arena)->base,
            &want->base);
}

static void replay_alpha_list(struct replay *replay, const json_t *answer)
{
    PodresV1alpha1__ListPodResourcesResponse *want =
        recorded(replay, &podres_v1alpha1__list_pod_resources_response__descriptor, answer);

    (void)dv_device_collect(replay->state.devices); /* as the server does */
    sort(want->pod_resources, want->n_pod_resources, compare_alpha_pods);
    for (size_t i = 0; i < want->n_pod_resources; i++)
        for (size_t k = 0; k < want->pod_resources[i]->n_containers; k++)
            sort(want->pod_resources[i]->containers[k]->devices,
                 want->pod_resources[i]->containers[k]->n_devices, compare_alpha_devices);
    compare(replay, "v1alpha1 List",
            &dv_podres_alpha_list(&replay->state.node, replay->state.arena)->base, &want->base);
}

static void replay_state(const json_t *json, bool is_strict, struct score *score)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const json_t *responses = json_object_get(json, "responses");
    struct replay replay = {.score = score};

    state_init(&replay.state, json, is_strict, arena);
    replay_gets(&replay, "Get", json_object_get(responses, "getBeforeList"));
    replay_allocatable(&replay, json_object_get(responses, "getAllocatableResources"));
    replay_list(&replay, json_object_get(responses, "list"));
    replay_gets(&replay, "Get after List", json_object_get(responses, "getAfterList"));
    replay_alpha_list(&replay, json_object_get(responses, "v1alpha1List"));
    state_fini(&replay.state);
}

/* ------------------------------------------------------------------------------------------- */

struct scores {
    struct score strict;
    struct score usual;
};

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct scores *scores = ctx;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    (void)kind;
    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++) {
        json_error_t error;
        DV_CLEANUP(free_json) json_t *json = json_loadb(text, (size_t)n, 0, &error);

        if (!json) {
            printf("%s:%u: %s\n", name, line, error.text);
            scores->strict.n_failed++;
            continue;
        }
        replay_state(json, true, &scores->strict);
        replay_state(json, false, &scores->usual);
    }
    free(text);
}

int main(int argc, char **argv)
{
    static const struct golden_kind kind = {
        "states.jsonl", {"responses", "allocations"},
         {NULL          }
    };
    struct scores scores = {0};
    const struct score *strict = &scores.strict;
    const struct score *usual = &scores.usual;
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: golden_podresources DIR\n");
        return 2;
    }
    n_lost = golden_files(argv[1], &kind, 1, replay_file, &scores);
    scores.strict.n_failed += n_lost;
    printf("strictly: %u answers as the reference's\n", strict->n_passed);
    printf("by default: %u answers as the reference's but for these rules\n", usual->n_passed);
    for (size_t i = 0; i < DV_COUNT(rules); i++)
        printf("    in %3u answers: %s\n", usual->n_by_rule[i], rules[i]);
    printf("%u passed, %u failed\n", strict->n_passed + usual->n_passed,
           strict->n_failed + usual->n_failed);
    return strict->n_failed + usual->n_failed > 0;
}
