/* pod_input.c - a pod that is to be admitted, from the text or the typed object that somebody has
 * of it. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pod/pod.h"
#include "resource/resource.h"

/* The API limits a request to 3 MiB in any encoding, and a Pod is longest as JSON: this limit is
 * four times as large. */
#define JSON_BYTES_MAX (12u << 20)

static struct dv_pod_input *new_input(void)
{
    struct dv_arena *arena = dv_arena_new();
    struct dv_pod_input *input = DV_NEW(arena, struct dv_pod_input);

    input->arena = arena;
    return input;
}

void dv_pod_input_free(struct dv_pod_input *input)
{
    if (input)
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

static bool print(const struct dv_object *object, struct dv_arena *arena, dv_str *json,
                  struct dv_err *err)
{
    const struct dv_api_version *version = &object->kind->versions[0];
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, JSON_BYTES_MAX);
    dv_encode_json_text(version->message, object->value, version, object->kind->name, &buf);
    *json = dv_str_copy(dv_buf_str(&buf), arena);
    return dv_buf_check(&buf, "pod", err);
}

struct dv_pod_input *dv_pod_input_of_object(const struct dv_object *object, struct dv_err *err)
{
    struct dv_pod_input *input = new_input();

    if (dv_pod_spec_read(object->value, input->arena, &input->spec, err) &&
        print(object, input->arena, &input->json, err))
        return input;
    dv_pod_input_free(input);
    return NULL;
}
