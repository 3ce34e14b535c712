#include "pod_life_deeds.h"

#include <assert.h>

#include "base/arena.h"
#include "pod_life_runtime.h"
#include "json/json.h"

/* From the start of the agent's process to its first sync. */
enum { AGENT_START_MS = 1400 };

/* ---- the API ---- */

void deed_vanish(struct world *world)
{
    world->pod.metadata.deletion_timestamp =
        (struct dv_time){.seconds = LIFE_BASE_S + (int64_t)(world->now_ms / 1000), .is_set = true};
    world->pod.metadata.deletion_grace_period_seconds = DV_NEW(world->arena, int64_t);
    world->has_vanished = true;
}

static void delete_pod(struct world *world, const struct dv_json *json)
{
    const int64_t *own_s = world->pod.spec.termination_grace_period_seconds;
    int64_t *grace_s = DV_NEW(world->arena, int64_t);

    *grace_s = own_s ? *own_s : 30;
    if (dv_json_get(json, DV_STR("gracePeriodSeconds")))
        *grace_s = (int64_t)record_double(json, "gracePeriodSeconds");
    if (*grace_s == 0 || dv_pod_is_terminal(&world->pod)) {
        deed_vanish(world);
        return;
    }
    if (world->pod.metadata.deletion_grace_period_seconds &&
        *world->pod.metadata.deletion_grace_period_seconds <= *grace_s)
        return;
    world->pod.metadata.deletion_grace_period_seconds = grace_s;
    world->pod.metadata.deletion_timestamp = (struct dv_time){
        .seconds = LIFE_BASE_S + (int64_t)(world->now_ms / 1000) + *grace_s, .is_set = true};
    world->pod.metadata.generation++;
}

static void patch_image(struct world *world, const struct dv_json *json)
{
    for (size_t i = 0; i < world->pod.spec.n_containers; i++)
        if (dv_str_eq(world->pod.spec.containers[i].name, record_str(json, "container")))
            world->pod.spec.containers[i].image = record_str(json, "image");
    world->pod.metadata.generation++;
}

static void add_ephemeral(struct world *world, const struct dv_json *json)
{
    struct dv_api_pod_spec *spec = &world->pod.spec;
    struct dv_api_ephemeral_container *containers = DV_NEW_ARRAY(
        world->arena, struct dv_api_ephemeral_container, spec->n_ephemeral_containers + 1);
    struct dv_api_ephemeral_container *added = &containers[spec->n_ephemeral_containers];

    for (size_t i = 0; i < spec->n_ephemeral_containers; i++)
        containers[i] = spec->ephemeral_containers[i];
    added->ephemeral_container_common.name = record_str(json, "name");
    added->ephemeral_container_common.image = record_str(json, "image");
    added->ephemeral_container_common.image_pull_policy = DV_STR("IfNotPresent");
    added->target_container_name = record_str(json, "targetContainerName");
    spec->ephemeral_containers = containers;
    spec->n_ephemeral_containers++;
    world->pod.metadata.generation++;
}

static void set_condition(struct world *world, const struct dv_json *json)
{
    struct dv_api_pod_status *status = &world->pod.status;
    struct dv_api_pod_condition *conditions =
        DV_NEW_ARRAY(world->arena, struct dv_api_pod_condition, status->n_conditions + 1);

    for (size_t i = 0; i < status->n_conditions; i++)
        conditions[i] = status->conditions[i];
    conditions[status->n_conditions].type = record_str(json, "type");
    conditions[status->n_conditions].status = record_str(json, "status");
    status->conditions = conditions;
    status->n_conditions++;
}

static void write_file(struct world *world, const struct dv_json *json)
{
    struct dv_err err;
    struct dv_api_pod pod = {0};
    bool ok = dv_decode_json(&dv_message_pod, dv_json_get(json, DV_STR("pod")), DV_UNKNOWN_DROP,
                             world->arena, &pod, NULL, &err);

    assert(ok);
    dv_default(dv_kind(DV_KIND_POD), &dv_kind(DV_KIND_POD)->versions[0], &pod,
               (struct dv_time){.seconds = LIFE_BASE_S, .is_set = true}, world->arena);
    world->is_static = true;
    world->uid = dv_str_printf(world->arena, "<static-uid:%u>", world->n_static++);
    pod.metadata.uid = world->uid;
    world->pod = pod;
    world->has_pod = true;
    world->has_vanished = false;
}

static struct world_container *newest_running(struct world *world, dv_str name)
{
    for (size_t i = world->containers.n; i-- > 0;)
        if (world->containers.v[i].is_there &&
            world->containers.v[i].view.state == DV_LIFE_RUNNING &&
            dv_str_eq(world->containers.v[i].view.name, name))
            return &world->containers.v[i];
    return NULL;
}

void deed_start_agent(struct world *world)
{
    world->is_down = false;
    world->n_agents++;
    world->agent_since_ms = world->now_ms;
    world->life = dv_life_new();
    world->view_ms = 0;
    world->again_ms = UINT64_MAX;
    world->view_after_ms = 0;
}

void deed_do(struct world *world, const struct record_action *action)
{
    const struct dv_json *json = action->json;
    struct world_container *container;

    if (dv_str_eq(action->verb, DV_STR("delete"))) {
        delete_pod(world, json);
    } else if (dv_str_eq(action->verb, DV_STR("create"))) {
        world->has_pod = true;
    } else if (dv_str_eq(action->verb, DV_STR("create-configmap")) ||
               dv_str_eq(action->verb, DV_STR("create-secret"))) {
        world->has_config = true;
    } else if (dv_str_eq(action->verb, DV_STR("patch-image"))) {
        patch_image(world, json);
    } else if (dv_str_eq(action->verb, DV_STR("ephemeral"))) {
        add_ephemeral(world, json);
    } else if (dv_str_eq(action->verb, DV_STR("condition"))) {
        set_condition(world, json);
    } else if (dv_str_eq(action->verb, DV_STR("kill-container"))) {
        container = newest_running(world, record_str(json, "container"));
        if (container)
            runtime_end(world, container, 137, "Error");
    } else if (dv_str_eq(action->verb, DV_STR("kill-sandbox"))) {
        for (size_t i = 0; i < world->sandboxes.n; i++)
            world->sandboxes.v[i].is_ready = false;
    } else if (dv_str_eq(action->verb, DV_STR("stop-kubelet"))) {
        dv_life_free(world->life);
        world->life = NULL;
        world->is_down = true;
    } else if (dv_str_eq(action->verb, DV_STR("start-kubelet"))) {
        deed_start_agent(world);
    } else if (dv_str_eq(action->verb, DV_STR("remove-file"))) {
        world->has_vanished = true;
    } else if (dv_str_eq(action->verb, DV_STR("write-file"))) {
        write_file(world, json);
    }
}

uint64_t deed_ms(const struct record_action *action)
{
    if (dv_str_eq(action->verb, DV_STR("start-kubelet")))
        return action->ms + AGENT_START_MS;
    return action->ms;
}
