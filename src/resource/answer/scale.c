#include "resource/scale.h"

#include "base/arena.h"
#include "resource/resource.h"
#include "resource/select.h"

void dv_scale_of(const struct dv_object *object, struct dv_arena *arena, struct dv_api_scale *scale)
{
    const struct dv_api_deployment *deployment = object->value;
    const struct dv_api_replica_set *set = object->value;
    bool is_set = object->kind->id == DV_KIND_REPLICA_SET;
    const int64_t *wanted = is_set ? set->spec.replicas : deployment->spec.replicas;

    *scale = (struct dv_api_scale){
        .metadata = {.name = object->meta->name,
                     .namespace = object->meta->namespace,
                     .uid = object->meta->uid,
                     .resource_version = object->meta->resource_version,
                     .creation_timestamp = object->meta->creation_timestamp},
        .spec = {.replicas = wanted ? *wanted : 0                 },
        .status = {.replicas = is_set ? set->status.replicas : deployment->status.replicas,
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
