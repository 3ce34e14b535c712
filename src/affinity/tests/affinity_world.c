#include "affinity/tests/affinity_world.h"

#include "support/dvtest.h"

#include <stdlib.h>

#include "base/arena.h"
#include "resource/resource.h"
#include "json/json.h"

#define HARD "{key: gpu, effect: NoSchedule}"
#define SOFT "{key: soft, effect: PreferNoSchedule}"

static struct dv_object *read_object(struct affinity_world *world, enum dv_kind_id id,
                                     const char *yaml)
{
    const struct dv_kind *kind = dv_kind(id);
    const struct dv_message *message = kind->versions[0].message;
    void *value = dv_arena_alloc(world->arena, message->size, message->align);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(yaml), NULL, world->arena, &err);
    struct dv_object *object;

    if (!doc)
        fail_msg("%s: %s", yaml, err.msg);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, world->arena, value, NULL, &err), &err);
    if (id == DV_KIND_POD) {
        struct dv_api_pod *pod = value;

        if (pod->metadata.namespace.n == 0)
            pod->metadata.namespace = DV_STR("default");
    }
    object = dv_object_new(kind, value);
    *dv_vec_add(&world->objects) = object;
    return object;
}

struct dv_object *affinity_pod(struct affinity_world *world, const char *yaml)
{
    return read_object(world, DV_KIND_POD, yaml);
}

struct dv_object *affinity_node(struct affinity_world *world, const char *yaml)
{
    return read_object(world, DV_KIND_NODE, yaml);
}

void affinity_namespace(struct affinity_world *world, const char *name, const char *team)
{
    const struct dv_str_entry label = {DV_STR("team"), dv_str_from_c(team ? team : "")};

    dv_affinity_set_namespace(world->index, dv_str_from_c(name), &label, 1, team != NULL);
}

struct affinity_world *affinity_world_new(void)
{
    static const char *const nodes[] = {
        "{metadata: {name: a, labels: {zone: '1', host: a}}}",
        "{metadata: {name: b, labels: {zone: '1', host: b}}}",
        "{metadata: {name: c, labels: {zone: '2', host: c}}, spec: {taints: [" HARD ", " SOFT "]}}",
        "{metadata: {name: d, labels: {host: d}}}",
    };
    struct affinity_world *world = DV_ALLOC(struct affinity_world);

    world->arena = dv_arena_new();
    world->index = dv_affinity_new();
    for (size_t i = 0; i < 4; i++)
        dv_affinity_enter(world->index, &world->nodes[i], affinity_node(world, nodes[i])->value);
    return world;
}

void affinity_place(struct affinity_world *world, char node, struct dv_object *pod)
{
    struct placed *placed = &world->placed[world->n_placed++];

    placed->object = pod;
    placed->node = (size_t)(node - 'a');
    dv_affinity_add(world->index, &world->nodes[placed->node], &placed->pod, pod);
}

void affinity_unplace(struct affinity_world *world, size_t i)
{
    struct placed *last = &world->placed[world->n_placed - 1];

    dv_affinity_remove(world->index, &world->placed[i].pod);
    if (last != &world->placed[i]) {
        world->placed[i] = *last;
        world->placed[i].pod.node->pods.v[last->pod.place] = &world->placed[i].pod;
    }
    world->n_placed--;
}

struct dv_affinity_wants *affinity_wants(struct affinity_world *world, struct dv_object *pod)
{
    struct dv_affinity_wants *wants = dv_affinity_wants_new(world->index, pod->value);
    uint64_t cost = 0;

    while (!dv_affinity_count(world->index, wants, 1, &cost))
        continue;
    dv_affinity_look_around(world->index, wants, pod->value);
    return wants;
}

void affinity_world_free(struct affinity_world *world)
{
    while (world->n_placed > 0)
        affinity_unplace(world, 0);
    for (size_t i = 0; i < N_WORLD_NODES; i++) {
        if (world->nodes[i].value)
            dv_affinity_leave(world->index, &world->nodes[i]);
        dv_affinity_node_fini(&world->nodes[i]);
    }
    dv_affinity_free(world->index);
    for (size_t i = 0; i < world->objects.n; i++)
        dv_object_unref(world->objects.v[i]);
    dv_vec_fini(&world->objects);
    dv_arena_free(world->arena);
    free(world);
}
