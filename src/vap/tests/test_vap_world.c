#include "vap/tests/test_vap_world.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/select.h"
#include "json/json.h"

void world_init(struct world *world)
{
    *world = (struct world){.arena = dv_arena_new(), .vap = dv_vap_new()};
}

void world_fini(struct world *world)
{
    dv_vap_free(world->vap);
    for (size_t i = 0; i < world->objects.n; i++)
        dv_object_unref(world->objects.v[i]);
    dv_vec_fini(&world->objects);
    dv_arena_free(world->arena);
}

void *world_read(struct world *world, const struct dv_kind *kind,
                 const struct dv_api_version *version, const struct dv_json *doc)
{
    void *value = dv_arena_alloc(world->arena, version->message->size, version->message->align);
    struct dv_err err;

    if (!dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, world->arena, value, NULL, &err))
        return NULL;
    dv_default(kind, version, value, (struct dv_time){0}, world->arena);
    return value;
}

static struct dv_object *make(struct world *world, enum dv_kind_id id, const char *text)
{
    const struct dv_kind *kind = dv_kind(id);
    struct dv_err err;
    const struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, world->arena, &err);
    const void *value = doc ? world_read(world, kind, kind->versions, doc) : NULL;

    return value ? dv_object_new(kind, value) : NULL;
}

static bool is_policy(enum dv_kind_id id)
{
    return id == DV_KIND_VALIDATING_POLICY || id == DV_KIND_VALIDATING_POLICY_BINDING;
}

bool world_add(struct world *world, enum dv_kind_id kind, const char *text)
{
    struct dv_object *object = make(world, kind, text);

    if (!object)
        return false;
    if (!is_policy(kind)) {
        *dv_vec_add(&world->objects) = object;
        return true;
    }
    dv_vap_changed(world->vap, NULL, object);
    dv_object_unref(object);
    return true;
}

void world_remove(struct world *world, enum dv_kind_id kind, const char *text)
{
    struct dv_object *object = make(world, kind, text);

    dv_vap_changed(world->vap, object, NULL);
    dv_object_unref(object);
}

static bool is_there(const struct dv_object *object, const struct dv_kind *kind, dv_str namespace)
{
    return object->kind == kind &&
           (namespace.n == 0 || dv_str_eq(object->meta->namespace, namespace));
}

static const struct dv_object *get(void *ctx, const struct dv_kind *kind, dv_str namespace,
                                   dv_str name)
{
    struct world *world = ctx;

    for (size_t i = 0; i < world->objects.n; i++)
        if (is_there(world->objects.v[i], kind, namespace) &&
            dv_str_eq(world->objects.v[i]->meta->name, name))
            return world->objects.v[i];
    return NULL;
}

static void list(void *ctx, const struct dv_kind *kind, dv_str namespace,
                 const struct dv_api_label_selector *selector,
                 void (*each)(void *each_ctx, const struct dv_object *object), void *each_ctx)
{
    struct world *world = ctx;
    const struct dv_label_selector *labels = dv_label_selector_of(selector, world->arena);

    for (size_t i = 0; i < world->objects.n; i++) {
        const struct dv_object *object = world->objects.v[i];

        if (labels && is_there(object, kind, namespace) &&
            dv_label_selector_matches(labels, object->meta->labels, object->meta->n_labels))
            each(each_ctx, object);
    }
}

/* Who uses something, or is trusted, may. */
static void decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    struct world *world = ctx;

    (void)arena;
    world->n_decided++;
    decision->is_allowed =
        dv_str_eq(check->verb, DV_STR("use")) || dv_str_eq(check->account_name, DV_STR("trusted"));
    decision->reason = DV_STR("because");
}

struct dv_vap_world world_seam(struct world *world)
{
    return (struct dv_vap_world){.get = get, .list = list, .decide = decide, .ctx = world};
}
