#include "cluster/objects/custom_kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/history.h"
#include "resource/custom.h"
#include "resource/resource.h"

dv_str dv_custom_key_of(const struct dv_kind *kind, struct dv_arena *arena)
{
    return dv_kind_is_custom(kind) ? dv_str_printf(arena, DV_CUSTOM_KEY "%.*s",
                                                   DV_FMT(dv_custom_kind_of(kind)->full_name))
                                   : kind->name;
}

void dv_custom_kinds_init(struct dv_custom_kinds *kinds, struct dv_slabs *memory)
{
    *kinds = (struct dv_custom_kinds){.memory = memory};
}

void dv_custom_kinds_fini(struct dv_custom_kinds *kinds)
{
    for (size_t i = 0; i < kinds->n; i++) {
        dv_collection_fini(&kinds->v[i]->collection);
        dv_custom_unref(kinds->v[i]->kind.custom);
        dv_custom_unref(kinds->v[i]->compiled);
        free(kinds->v[i]);
    }
    dv_vec_fini(kinds);
    free(kinds->served.v);
    *kinds = (struct dv_custom_kinds){0};
}

/* The kind that a definition of that name makes, "plural.group". */
static struct dv_custom_kind *find(const struct dv_custom_kinds *kinds, dv_str full_name,
                                   dv_str kind_name, bool is_namespaced)
{
    for (size_t i = 0; i < kinds->n; i++)
        if (dv_str_eq(kinds->v[i]->full_name, full_name) &&
            dv_str_eq(kinds->v[i]->kind.name, kind_name) &&
            kinds->v[i]->kind.is_namespaced == is_namespaced)
            return kinds->v[i];
    return NULL;
}

struct dv_custom_kind *dv_custom_kinds_by_key(const struct dv_custom_kinds *kinds, dv_str full_name)
{
    for (size_t i = kinds->n; i > 0; i--)
        if (dv_str_eq(kinds->v[i - 1]->full_name, full_name))
            return kinds->v[i - 1];
    return NULL;
}

/* Copies a text behind the struct. */
static dv_str keep(char **at, dv_str text)
{
    char *copy = *at;

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    *at += text.n;
    return (dv_str){copy, text.n};
}

static dv_str storage_version(const struct dv_api_custom_resource_definition_spec *spec)
{
    for (size_t i = 0; i < spec->n_versions; i++)
        if (spec->versions[i].storage)
            return spec->versions[i].name;
    return DV_STR_NONE;
}

static struct dv_custom_kind *new_kind(const struct dv_api_custom_resource_definition *definition)
{
    const struct dv_api_custom_resource_definition_spec *spec = &definition->spec;
    dv_str version = storage_version(spec);
    size_t n = definition->metadata.name.n + spec->names.kind.n + spec->names.plural.n +
               spec->names.singular.n + spec->group.n + version.n;
    struct dv_custom_kind *made = dv_realloc(NULL, sizeof(*made) + n);
    char *at = made->names;

    memset(made, 0, sizeof(*made));
    made->full_name = keep(&at, definition->metadata.name);
    made->version.group = keep(&at, spec->group);
    made->version.version = keep(&at, version);
    made->version.message = &dv_message_custom_object;
    made->kind = (struct dv_kind){
        .id = DV_KIND_CUSTOM,
        .name = keep(&at, spec->names.kind),
        .plural = keep(&at, spec->names.plural),
        .singular = keep(&at, spec->names.singular),
        .versions = &made->version,
        .n_versions = 1,
        .is_namespaced = dv_str_eq(spec->scope, DV_STR("Namespaced")),
    };
    return made;
}

struct dv_custom_kind *
dv_custom_kinds_take(struct dv_custom_kinds *kinds,
                     const struct dv_api_custom_resource_definition *definition,
                     size_t n_history_max, uint64_t floor)
{
    struct dv_custom_kind *made =
        find(kinds, definition->metadata.name, definition->spec.names.kind,
             dv_str_eq(definition->spec.scope, DV_STR("Namespaced")));

    if (made)
        return made;
    if (kinds->n >= DV_CUSTOM_KINDS_MAX)
        return NULL;
    made = new_kind(definition);
    made->index = kinds->n;
    dv_collection_init(&made->collection, &made->kind, kinds->memory);
    dv_history_init(&made->collection.history, n_history_max, floor);
    *dv_vec_add(kinds) = made;
    return made;
}

static int by_group(const void *a, const void *b)
{
    const struct dv_kind *x = *(const struct dv_kind *const *)a;
    const struct dv_kind *y = *(const struct dv_kind *const *)b;
    int order = dv_str_cmp(x->versions[0].group, y->versions[0].group);

    return order ? order : dv_str_cmp(x->plural, y->plural);
}

void dv_custom_kind_serve(struct dv_custom_kinds *kinds, struct dv_custom_kind *kind,
                          struct dv_custom *custom)
{
    struct dv_custom_set *served = &kinds->served;

    dv_custom_unref(kind->kind.custom);
    kind->kind.custom = custom;
    kind->kind.has_status = false;
    kind->kind.has_scale = false;
    for (size_t i = 0; custom && i < custom->n_versions; i++) {
        kind->kind.has_status |= custom->versions[i].has_status;
        kind->kind.has_scale |= custom->versions[i].scale != NULL;
    }
    served->v = dv_realloc(served->v, kinds->n * sizeof(served->v[0]));
    served->n = 0;
    for (size_t i = 0; i < kinds->n; i++)
        if (kinds->v[i]->kind.custom)
            served->v[served->n++] = &kinds->v[i]->kind;
    if (served->n > 0)
        qsort(served->v, served->n, sizeof(served->v[0]), by_group);
    served->generation++;
}
