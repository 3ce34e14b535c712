/* pod_input.c - a pod that is to be admitted, from the text or the typed object that somebody has
 * of it. */
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/pod.h"
#include "resource/resource.h"

static struct dv_pod_input *new_input(void)
{
    struct dv_arena *arena = dv_arena_new();
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

struct dv_pod_input *dv_pod_input_of_object(struct dv_object *object, struct dv_err *err)
{
    struct dv_pod_input *input = new_input();

    input->object = dv_object_ref(object);
    if (dv_pod_spec_read(object->value, input->arena, &input->spec, err))
        return input;
    dv_pod_input_free(input);
    return NULL;
}
