#include "cli/explain/world.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/client/cli_api.h"
#include "cli/client/documents.h"
#include "resource/select.h"
#include "json/json.h"

void dv_cli_world_init(struct dv_cli_world *world, dv_str namespace, struct dv_arena *arena)
{
    *world = (struct dv_cli_world){.arena = arena, .namespace = namespace};
    dv_map_init(&world->known);
}

void dv_cli_world_fini(struct dv_cli_world *world)
{
    dv_map_fini(&world->known);
}

/* ---- objects in ---- */

static bool matters(const struct dv_kind *kind)
{
    switch ((int)kind->id) {
    case DV_KIND_POD:
    case DV_KIND_NODE:
    case DV_KIND_CLAIM:
    case DV_KIND_TEMPLATE:
    case DV_KIND_SLICE:
    case DV_KIND_CLASS:
    case DV_KIND_TAINT_RULE:
        return true;
    default:
        return false;
    }
}

static dv_str key_of(enum dv_kind_id kind, dv_str namespace, dv_str name, struct dv_arena *arena)
{
    return dv_str_printf(arena, "%d %.*s/%.*s", (int)kind, DV_FMT(namespace), DV_FMT(name));
}

static void keep(struct dv_cli_world *world, const struct dv_kind *kind, void *value)
{
    struct dv_api_object_meta *meta = value; /* every kind has its metadata first */
    struct dv_cli_thing *thing;
    dv_str key;

    if (kind->is_namespaced && meta->namespace.n == 0)
        meta->namespace = world->namespace;
    key = key_of(kind->id, kind->is_namespaced ? meta->namespace : DV_STR_NONE, meta->name,
                 world->arena);
    thing = dv_map_get(&world->known, key);
    if (!thing) {
        thing = DV_NEW(world->arena, struct dv_cli_thing);
        thing->name = meta->name;
        thing->namespace = meta->namespace;
        *dv_vec_add_in(&world->of[kind->id], world->arena) = thing;
        (void)dv_map_set(&world->known, key, thing); /* it was not there */
    }
    thing->value = value;
}

/* Finds the kind of a document; NULL: it is of no interest. False: it would be, but not in this
 * version. */
static bool find_kind(const struct dv_json *doc, const struct dv_kind **kind,
                      const struct dv_api_version **version, struct dv_err *err)
{
    dv_str api_version = dv_cli_text(doc, "", "apiVersion");
    dv_str name = dv_cli_text(doc, "", "kind");
    dv_str group;
    dv_str number;

    *kind = NULL;
    if (!dv_json_is(doc, DV_JSON_OBJECT) || api_version.n == 0 || name.n == 0)
        return dv_json_fail(doc, err, "no object of the API: it needs apiVersion and kind");
    dv_api_version_split(api_version, &group, &number);
    *kind = dv_kind_by_name(group, number, name, version);
    if (*kind && !matters(*kind))
        *kind = NULL;
    if (*kind || !dv_str_eq(group, DV_STR("resource.k8s.io")))
        return true;
    for (int id = 0; id < DV_N_KINDS; id++)
        if (matters(dv_kind((enum dv_kind_id)id)) &&
            dv_str_eq(dv_kind((enum dv_kind_id)id)->name, name))
            return dv_json_fail(doc, err, "%.*s of %.*s is not known; ask the server for another",
                                DV_FMT(name), DV_FMT(api_version));
    return true;
}

bool dv_cli_world_add(struct dv_cli_world *world, const struct dv_json *doc, struct dv_err *err)
{
    const struct dv_api_version *version = NULL;
    const struct dv_api_object_meta *meta;
    const struct dv_kind *kind;
    void *value;

    if (!find_kind(doc, &kind, &version, err))
        return false;
    if (!kind)
        return true;
    value = dv_arena_alloc(world->arena, version->message->size, version->message->align);
    if (!dv_decode_json(version->message, doc, DV_UNKNOWN_DROP, world->arena, value, NULL, err))
        return dv_wrap(err, "%.*s %.*s", DV_FMT(kind->name),
                       DV_FMT(dv_str_slice(dv_cli_text(doc, "metadata", "name"), 0, 64)));
    meta = value;
    if (meta->name.n == 0)
        return dv_json_fail(doc, err, "the %.*s has no name", DV_FMT(kind->name));
    dv_default(kind, version, value, dv_cli_now(), world->arena);
    keep(world, kind, value);
    return true;
}

bool dv_cli_world_read(struct dv_cli_world *world, dv_str path, struct dv_err *err)
{
    struct dv_cli_paths paths = {0};
    struct dv_cli_documents documents = {0};

    if (!dv_cli_paths_add(path, world->arena, &paths, err))
        return false;
    for (size_t i = 0; i < paths.n; i++)
        if (!dv_cli_documents_read(paths.v[i], world->arena, &documents, err))
            return false;
    for (size_t i = 0; i < documents.n; i++)
        if (!dv_cli_world_add(world, documents.v[i].json, err))
            return dv_wrap(err, "%.*s, document %zu", DV_FMT(documents.v[i].file),
                           documents.v[i].number);
    return true;
}

/* The field selector of the pods that are asked for. */
static dv_str pod_fields(const struct dv_cli_fetch *fetch, struct dv_arena *arena)
{
    return fetch->has_pending ? DV_STR("spec.nodeName=")
                              : dv_str_printf(arena, "metadata.name=%.*s", DV_FMT(fetch->pod));
}

bool dv_cli_world_fetch(struct dv_cli_world *world, struct dv_cli_api *api,
                        const struct dv_cli_fetch *fetch)
{
    static const struct {
        enum dv_kind_id kind;
        bool is_optional; /* there is an answer without it, if a worse one */
        bool is_of_pod;   /* only for its sake, from its namespace */
    } wanted[] = {
        {DV_KIND_CLAIM,      false, false},
        {DV_KIND_SLICE,      false, false},
        {DV_KIND_CLASS,      false, false},
        {DV_KIND_NODE,       true,  false},
        {DV_KIND_TAINT_RULE, true,  false},
        {DV_KIND_TEMPLATE,   true,  true },
        {DV_KIND_POD,        false, true },
    };
    struct dv_err err;

    for (size_t i = 0; i < DV_COUNT(wanted); i++) {
        struct dv_cli_list list = {.kind = dv_kind(wanted[i].kind)};

        if (wanted[i].is_of_pod && fetch->pod.n == 0 && !fetch->has_pending && !fetch->has_pods)
            continue;
        if (wanted[i].is_of_pod && !fetch->has_pods)
            list.namespace = fetch->namespace;
        if (wanted[i].kind == DV_KIND_POD && !fetch->has_pods)
            list.fields = pod_fields(fetch, world->arena);
        if (!dv_cli_api_list(api, &list, world->arena))
            return false;
        if (list.failure && wanted[i].is_optional && list.failure->code == 404)
            continue; /* an older server has no such kind */
        if (list.failure) {
            api->exit = dv_cli_api_complain(api, list.failure, list.kind->plural);
            if (!wanted[i].is_optional)
                return false;
            continue;
        }
        for (size_t k = 0; k < list.n_items; k++)
            if (!dv_cli_world_add(world, list.items[k], &err)) {
                api->exit = dv_cli_complain("%s, from the server", err.msg);
                return false;
            }
    }
    return true;
}

const void *dv_cli_world_find(const struct dv_cli_world *world, enum dv_kind_id kind,
                              dv_str namespace, dv_str name)
{
    dv_str key =
        key_of(kind, dv_kind(kind)->is_namespaced ? namespace : DV_STR_NONE, name, world->arena);
    const struct dv_cli_thing *thing = dv_map_get(&world->known, key);

    return thing ? thing->value : NULL;
}

/* ---- the inventory ---- */

static int by_name(const void *a, const void *b)
{
    return dv_str_cmp((*(struct dv_cli_thing *const *)a)->name,
                      (*(struct dv_cli_thing *const *)b)->name);
}

static void add_taint(struct dv_api_device *device, const struct dv_api_device_taint *taint,
                      struct dv_arena *arena)
{
    struct dv_api_device_taint *taints =
        DV_NEW_ARRAY(arena, struct dv_api_device_taint, device->n_taints + 1);

    if (device->n_taints > 0)
        memcpy(taints, device->taints, device->n_taints * sizeof(*taints));
    taints[device->n_taints++] = *taint;
    device->taints = taints;
}

/* Adds the taints of rules after the device's own, by the names of the rules. */
static void add_taints(const struct dv_cli_world *world, struct dv_api_resource_slice_spec *slice)
{
    const struct dv_cli_things *rules = &world->of[DV_KIND_TAINT_RULE];
    struct dv_api_device *devices =
        DV_NEW_ARRAY(world->arena, struct dv_api_device, slice->n_devices);

    if (rules->n == 0 || slice->n_devices == 0)
        return;
    memcpy(devices, slice->devices, slice->n_devices * sizeof(*devices));
    slice->devices = devices;
    for (size_t i = 0; i < rules->n; i++) {
        const struct dv_api_device_taint_rule *rule = rules->v[i]->value;

        for (size_t k = 0; k < slice->n_devices; k++)
            if (dv_taint_rule_selects(rule, slice->driver, slice->pool.name,
                                      slice->devices[k].name))
                add_taint(&slice->devices[k], &rule->spec.taint, world->arena);
    }
}

struct dv_inventory *dv_cli_world_inventory(struct dv_cli_world *world)
{
    const struct dv_alloc_features features = dv_alloc_features_default();
    struct dv_inventory *inventory = dv_inventory_new(&features);
    struct dv_cli_things *rules = &world->of[DV_KIND_TAINT_RULE];
    const struct dv_cli_things *classes = &world->of[DV_KIND_CLASS];
    const struct dv_cli_things *slices = &world->of[DV_KIND_SLICE];
    const struct dv_cli_things *claims = &world->of[DV_KIND_CLAIM];

    if (rules->n > 0)
        qsort(rules->v, rules->n, sizeof(struct dv_cli_thing *), by_name);
    for (size_t i = 0; i < classes->n; i++) {
        struct dv_object *class = dv_object_new(dv_kind(DV_KIND_CLASS), classes->v[i]->value);

        dv_inventory_set_class(inventory, class);
        dv_object_unref(class);
    }
    for (size_t i = 0; i < slices->n; i++) {
        struct dv_api_resource_slice slice =
            *(const struct dv_api_resource_slice *)slices->v[i]->value;
        struct dv_object *object;

        add_taints(world, &slice.spec);
        object = dv_object_new(dv_kind(DV_KIND_SLICE), &slice);
        (void)dv_inventory_add_slice(inventory, object); /* it stays for good */
        dv_object_unref(object);
    }
    for (size_t i = 0; i < claims->n; i++) {
        const struct dv_api_resource_claim *claim = claims->v[i]->value;

        if (claim->status.allocation)
            dv_inventory_hold(inventory, claim->status.allocation,
                              dv_str_printf(world->arena, "%.*s/%.*s",
                                            DV_FMT(claim->metadata.namespace),
                                            DV_FMT(claim->metadata.name)));
    }
    return inventory;
}

/* ---- nodes ---- */

static void add_node(struct dv_cli_nodes *nodes, dv_str name, dv_str only, struct dv_map *seen,
                     struct dv_arena *arena)
{
    if (name.n == 0 || (only.n && !dv_str_eq(name, only)) || dv_map_get(seen, name))
        return;
    (void)dv_map_set(seen, name, nodes); /* it was not there */
    *dv_vec_add_in(nodes, arena) = (struct dv_alloc_node){.name = name};
}

static void add_nodes_of_slices(const struct dv_cli_world *world, dv_str only,
                                struct dv_cli_nodes *nodes)
{
    const struct dv_cli_things *slices = &world->of[DV_KIND_SLICE];
    struct dv_map seen;

    dv_map_init(&seen);
    for (size_t i = 0; i < slices->n; i++) {
        const struct dv_api_resource_slice *slice = slices->v[i]->value;

        add_node(nodes, slice->spec.node_name, only, &seen, world->arena);
        for (size_t k = 0; k < slice->spec.n_devices; k++)
            add_node(nodes, slice->spec.devices[k].node_name, only, &seen, world->arena);
    }
    dv_map_fini(&seen);
}

bool dv_cli_world_nodes(const struct dv_cli_world *world, dv_str only, struct dv_cli_nodes *nodes,
                        struct dv_err *err)
{
    const struct dv_cli_things *things = &world->of[DV_KIND_NODE];

    *nodes = (struct dv_cli_nodes){0};
    for (size_t i = 0; i < things->n; i++) {
        const struct dv_api_node *node = things->v[i]->value;

        if (!only.n || dv_str_eq(only, things->v[i]->name))
            *dv_vec_add_in(nodes, world->arena) = (struct dv_alloc_node){
                things->v[i]->name, node->metadata.labels, node->metadata.n_labels};
    }
    if (nodes->n > 0)
        return true;
    if (things->n > 0)
        return dv_fail(err, DV_NOT_FOUND, "there is no node %.*s", DV_FMT(only));
    add_nodes_of_slices(world, only, nodes);
    /* A node without devices of its own has those that are for all nodes. */
    if (nodes->n == 0 && only.n)
        *dv_vec_add_in(nodes, world->arena) = (struct dv_alloc_node){.name = only};
    if (nodes->n == 0)
        return dv_fail(err, DV_NOT_FOUND,
                       "no nodes are known: there are no Node objects, and no slice names one; "
                       "name one with --node");
    return true;
}
