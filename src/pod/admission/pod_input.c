/* pod_input.c - a pod that is to be admitted, from the text or the typed object that somebody has
 * of it. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* What is kept of a pod of one container that came typed has room in this, with its names. */
#define SMALL_BYTES (sizeof(struct dv_pod_input) + 256)

static struct dv_pod_input *new_input(void)
{
    struct dv_arena *arena = dv_arena_new_sized(SMALL_BYTES);
    struct dv_pod_input *input = DV_NEW(arena, struct dv_pod_input);

    input->arena = arena;
    return input;
}

void dv_pod_input_free(struct dv_pod_input *input)
{
    if (!input)
        return;
    dv_object_unref(input->object);
    dv_arena_free(input->arena);
}

struct dv_pod_input *dv_pod_input_parse(dv_str json, struct dv_err *err)
{
    struct dv_pod_input *input = new_input();

    input->json = dv_str_copy(json, input->arena);
    if (dv_pod_spec_parse(json, input->arena, &input->spec, err))
        return input;
    dv_pod_input_free(input);
    return NULL;
}

/* Copies what the spec has of the object's texts: a pod without claims needs no more of it. */
static void own_texts(struct dv_pod_spec *spec, struct dv_arena *arena)
{
    spec->ref.uid = dv_str_copy(spec->ref.uid, arena);
    spec->ref.namespace = dv_str_copy(spec->ref.namespace, arena);
    spec->ref.name = dv_str_copy(spec->ref.name, arena);
    spec->owner_cgroup = dv_str_copy(spec->owner_cgroup, arena);
    for (size_t i = 0; i < spec->n_containers; i++) {
        struct dv_pod_container *container = &spec->containers[i];

        container->name = dv_str_copy(container->name, arena);
        for (size_t k = 0; k < container->n_limits; k++)
            container->limits[k].resource = dv_str_copy(container->limits[k].resource, arena);
    }
}

struct dv_pod_input *dv_pod_input_of_object(struct dv_object *object, struct dv_err *err)
{
    struct dv_pod_input *input = new_input();

    input->object = dv_object_ref(object);
    if (!dv_pod_spec_read(object->value, input->arena, &input->spec, err)) {
        dv_pod_input_free(input);
        return NULL;
    }
    if (!input->spec.object)
        own_texts(&input->spec, input->arena);
    return input;
}
