#include "resource/scale.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/custom.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "json/json.h"
#include "json/jsonpath.h"

static struct dv_api_object_meta meta_of(const struct dv_object *object)
{
    return (struct dv_api_object_meta){.name = object->meta->name,
                                       .namespace = object->meta->namespace,
                                       .uid = object->meta->uid,
                                       .resource_version = object->meta->resource_version,
                                       .creation_timestamp = object->meta->creation_timestamp};
}

void dv_scale_of(const struct dv_object *object, struct dv_arena *arena, struct dv_api_scale *scale)
{
    const struct dv_api_deployment *deployment = object->value;
    const struct dv_api_replica_set *set = object->value;
    bool is_set = object->kind->id == DV_KIND_REPLICA_SET;
    const int64_t *wanted = is_set ? set->spec.replicas : deployment->spec.replicas;

    *scale = (struct dv_api_scale){
        .metadata = meta_of(object),
        .spec = {.replicas = wanted ? *wanted : 0},
        .status = { .replicas = is_set ? set->status.replicas : deployment->status.replicas,
                 .selector = dv_selector_print(
                       is_set ? set->spec.selector : deployment->spec.selector, arena)},
    };
}

void dv_scale_set(const struct dv_object *object, void *value, int64_t replicas,
                  struct dv_arena *arena)
{
    int64_t *wanted = DV_NEW(arena, int64_t);

    *wanted = replicas;
    if (object->kind->id == DV_KIND_REPLICA_SET)
        ((struct dv_api_replica_set *)value)->spec.replicas = wanted;
    else
        ((struct dv_api_deployment *)value)->spec.replicas = wanted;
}

/* ---- kinds that definitions make ---- */

/* The number that the path leads to; false: nothing is there, or something else. */
static bool find_number(const struct dv_json *doc, dv_str path, struct dv_arena *arena,
                        int64_t *number)
{
    const struct dv_json *found = NULL;
    struct dv_err err;

    return dv_jsonpath_first(path, doc, arena, &found, &err) && found &&
           dv_json_as_i64(found, number, &err);
}

static dv_str find_text(const struct dv_json *doc, dv_str path, struct dv_arena *arena)
{
    const struct dv_json *found = NULL;
    struct dv_err err;
    dv_str text = DV_STR_NONE;

    if (path.n > 0 && dv_jsonpath_first(path, doc, arena, &found, &err) && found)
        (void)!dv_json_as_str(found, &text, &err); /* what is no text is no selector */
    return text;
}

bool dv_scale_of_custom(const struct dv_object *object, const struct dv_custom_version *version,
                        struct dv_arena *arena, struct dv_api_scale *scale, dv_str *missing)
{
    const struct dv_json *doc = dv_custom_document(version, object->value, arena);

    *scale = (struct dv_api_scale){.metadata = meta_of(object)};
    *missing = version->scale->spec_replicas_path;
    if (!find_number(doc, version->scale->spec_replicas_path, arena, &scale->spec.replicas))
        return false;
    if (!find_number(doc, version->scale->status_replicas_path, arena, &scale->status.replicas))
        scale->status.replicas = 0;
    scale->status.selector = find_text(doc, version->scale->label_selector_path, arena);
    return true;
}

bool dv_scale_set_custom(const struct dv_custom_version *version,
                         struct dv_api_custom_object *object, int64_t replicas,
                         struct dv_arena *arena)
{
    return dv_custom_set_number(object, version->scale->spec_replicas_path, replicas, arena);
}
