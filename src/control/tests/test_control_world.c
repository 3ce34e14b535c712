#include "control/tests/test_control_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "support/api_front.h"
#include "support/turns.h"

/* ---- life ---- */

int start_world(void **state)
{
    struct world *world = DV_ALLOC(struct world);

    *state = world;
    api_init(&world->api);
    world->options = (struct dv_control_options){.cluster = &world->api.front.cluster,
                                                 .gates = dv_control_gates_default()};
    return 0;
}

void open_control(struct world *world)
{
    struct dv_err err;

    world->control = dv_control_open(world->api.loop, &world->options, &err);
    assert_ok(world->control, &err);
    settle(world);
}

void close_control(struct world *world)
{
    bool is_closed = false;

    if (!world->control)
        return;
    dv_control_close(world->control, set_flag, &is_closed);
    world->control = NULL;
    loop_wait_flag(world->api.loop, &is_closed);
    assert_true(dv_list_is_empty(&world->api.front.relays));
}

int end_world(void **state)
{
    struct world *world = *state;

    close_control(world);
    api_fini(&world->api);
    free(world);
    return 0;
}

void release_requests(struct world *world)
{
    world->api.front.is_holding = false;
    api_front_send(&world->api.front, SIZE_MAX);
}

void settle(struct world *world)
{
    api_settle(&world->api);
}

void pass(struct world *world, uint64_t ms)
{
    api_pass(&world->api, ms);
}

/* ---- what tests do ---- */

struct dv_object *make(struct world *world, enum dv_kind_id kind, const char *namespace,
                       const char *yaml)
{
    struct dv_object *object = api_must(api_create(&world->api, kind, namespace, yaml));

    settle(world);
    return object;
}

int attempt(struct world *world, enum dv_kind_id kind, enum dv_subresource subresource,
            const char *namespace, const char *name, const char *yaml)
{
    int code = api_patch(&world->api, kind, subresource, namespace, name, yaml).code;

    settle(world);
    return code;
}

void change(struct world *world, enum dv_kind_id kind, const char *namespace, const char *name,
            const char *yaml)
{
    (void)api_must(api_patch(&world->api, kind, DV_SUB_NONE, namespace, name, yaml));
    settle(world);
}

void change_status(struct world *world, enum dv_kind_id kind, const char *namespace,
                   const char *name, const char *yaml)
{
    (void)api_must(api_patch(&world->api, kind, DV_SUB_STATUS, namespace, name, yaml));
    settle(world);
}

static void remove_object(struct world *world, enum dv_kind_id kind, const char *namespace,
                          const char *name, const int64_t *grace_s)
{
    struct api_reply reply = api_delete(&world->api, kind, namespace, name, grace_s);

    if (reply.code != 404)
        (void)api_must(reply);
    settle(world);
}

void destroy(struct world *world, enum dv_kind_id kind, const char *namespace, const char *name)
{
    static const int64_t at_once = 0;

    remove_object(world, kind, namespace, name, &at_once);
}

void delete_gently(struct world *world, enum dv_kind_id kind, const char *namespace,
                   const char *name)
{
    remove_object(world, kind, namespace, name, NULL);
}

void allocate(struct world *world, const char *claim, const char *results, const char *pods)
{
    dv_str rest = dv_str_from_c(pods);
    struct dv_buf yaml;
    dv_str name;

    dv_buf_init(&yaml, 1u << 20);
    dv_buf_printf(&yaml, "{status: {" ALLOCATION("%s") ", reservedFor: [", results);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &name)) {
        const struct dv_object *pod =
            look(world, DV_KIND_POD, "default", dv_str_to_c(name, world->api.arena));

        dv_buf_printf(&yaml, "{resource: pods, name: %.*s, uid: %.*s},", DV_FMT(name),
                      DV_FMT(pod ? pod->meta->uid : DV_STR("gone")));
    }
    dv_buf_add_c(&yaml, "]}}");
    change(world, DV_KIND_CLAIM, "default", claim, FINALIZER);
    change_status(world, DV_KIND_CLAIM, "default", claim, dv_buf_c(&yaml));
    dv_buf_fini(&yaml);
}

/* ---- what tests see ---- */

struct dv_object *look(struct world *world, enum dv_kind_id kind, const char *namespace,
                       const char *name)
{
    return api_get(&world->api, kind, namespace, name);
}

const struct dv_api_pod *look_pod(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_POD, "default", name);

    return object ? object->value : NULL;
}

const struct dv_api_resource_claim *look_claim(struct world *world, const char *name)
{
    const struct dv_object *object = look(world, DV_KIND_CLAIM, "default", name);

    return object ? object->value : NULL;
}

size_t list(struct world *world, enum dv_kind_id kind, const char *namespace,
            struct dv_object ***objects)
{
    return api_list(&world->api, kind, namespace, objects);
}

const struct dv_api_resource_claim *generated(struct world *world, const char *pod,
                                              const char *entry)
{
    const struct dv_api_resource_claim *found = NULL;
    struct dv_object **objects;
    size_t n = list(world, DV_KIND_CLAIM, "default", &objects);

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_object_meta *meta = objects[i]->meta;
        const struct dv_str_entry *annotation =
            dv_entry_find(meta->annotations, meta->n_annotations,
                          DV_STR("resource.kubernetes.io/pod-claim-name"));

        if (!annotation || !dv_str_eq(annotation->value, dv_str_from_c(entry)) ||
            meta->n_owner_references != 1 ||
            !dv_str_eq(meta->owner_references[0].name, dv_str_from_c(pod)))
            continue;
        if (found)
            fail_msg("two claims for entry %s of pod %s", entry, pod);
        found = objects[i]->value;
    }
    return found;
}

size_t n_events(struct world *world, const char *pod, const char *reason, const char *message)
{
    struct dv_object **objects;
    size_t n = list(world, DV_KIND_EVENT, "", &objects);
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_event *event = objects[i]->value;

        if (dv_str_eq(event->involved_object.name, dv_str_from_c(pod)) &&
            dv_str_eq(event->reason, dv_str_from_c(reason)) &&
            (!message || dv_str_eq(event->message, dv_str_from_c(message))))
            n_found += (size_t)event->count;
    }
    return n_found;
}
