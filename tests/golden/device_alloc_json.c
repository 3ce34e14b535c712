#include "device_alloc_json.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device_alloc_world.h"
#include "json/json.h"

/* -- Options and status --------------------------------------------------------------------- */

struct keyed {
    dv_str key;
    struct dv_json *object;
};

static int keyed_cmp(const void *a, const void *b)
{
    const struct keyed *x = a;
    const struct keyed *y = b;

    return dv_str_cmp(x->key, y->key);
}

/* The objects of a list, by the text of one member. */
static struct dv_json *sort_by(const char *key, struct dv_json *list, struct dv_arena *arena)
{
    struct keyed *v = DV_NEW_ARRAY(arena, struct keyed, dv_json_n(list));
    struct dv_json *sorted = dv_json_new_array(arena);
    size_t n = 0;

    for (struct dv_json *one = dv_json_first(list); one; one = dv_json_next(one))
        v[n++] = (struct keyed){text_of(one, key), dv_json_copy(one, arena)};
    qsort(v, n, sizeof(v[0]), keyed_cmp);
    for (size_t i = 0; i < n; i++)
        dv_json_append(sorted, v[i].object);
    return sorted;
}

static void set_text(struct dv_json *object, const char *key, dv_str text, struct dv_arena *arena)
{
    set_member(object, key, dv_json_new_str(text, arena), arena);
}

static struct dv_json *pairs_to_json(const struct dv_device_pair *pairs, size_t n,
                                     struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < n; i++) {
        struct dv_json *pair = dv_json_new_object(arena);

        set_text(pair, "name", pairs[i].name, arena);
        set_text(pair, "value", pairs[i].value, arena);
        dv_json_append(list, pair);
    }
    return sort_by("name", list, arena);
}

static struct dv_json *mounts_to_json(const struct dv_device_options *options,
                                      struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < options->n_mounts; i++) {
        const struct dv_device_mount *from = &options->mounts[i];
        struct dv_json *mount = dv_json_new_object(arena);

        set_text(mount, "containerPath", from->container_path, arena);
        set_text(mount, "hostPath", from->host_path, arena);
        set_text(mount, "name", from->container_path, arena);
        set_member(mount, "readOnly", dv_json_new_bool(from->is_read_only, arena), arena);
        dv_json_append(list, mount);
    }
    return sort_by("containerPath", list, arena);
}

static struct dv_json *nodes_to_json(const struct dv_device_options *options,
                                     struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < options->n_nodes; i++) {
        const struct dv_device_node *from = &options->nodes[i];
        struct dv_json *node = dv_json_new_object(arena);

        set_text(node, "containerPath", from->container_path, arena);
        set_text(node, "hostPath", from->host_path, arena);
        set_text(node, "permissions", from->permissions, arena);
        dv_json_append(list, node);
    }
    return sort_by("containerPath", list, arena);
}

static struct dv_json *names_to_json(const struct dv_device_options *options,
                                     struct dv_arena *arena)
{
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < options->n_cdi_names; i++) {
        struct dv_json *name = dv_json_new_object(arena);

        set_text(name, "name", options->cdi_names[i], arena);
        dv_json_append(list, name);
    }
    return sort_by("name", list, arena);
}

struct dv_json *options_to_json(const struct dv_device_options *options, struct dv_arena *arena)
{
    struct dv_json *all = dv_json_new_object(arena);

    set_member(all, "envs", pairs_to_json(options->envs, options->n_envs, arena), arena);
    set_member(all, "mounts", mounts_to_json(options, arena), arena);
    set_member(all, "devices", nodes_to_json(options, arena), arena);
    set_member(all, "annotations",
               pairs_to_json(options->annotations, options->n_annotations, arena), arena);
    set_member(all, "cdi", names_to_json(options, arena), arena);
    return all;
}

struct dv_json *status_to_json(const struct dv_device_status *status, struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < status->n_ids; i++) {
        struct dv_json *device = dv_json_new_object(arena);

        set_text(device, "id", status->ids[i], arena);
        set_text(device, "health", status->is_healthy[i] ? DV_STR("Healthy") : DV_STR("Unhealthy"),
                 arena);
        dv_json_append(list, device);
    }
    set_text(object, "name", status->resource, arena);
    set_member(object, "resources", sort_by("id", list, arena), arena);
    return object;
}

/* -- Counts --------------------------------------------------------------------------------- */

static struct dv_json *count(const struct dv_json *container, struct dv_arena *arena)
{
    return dv_json_new_u64(dv_json_n(container), arena);
}

/* Node -> ids: how many different ids. */
static struct dv_json *count_placed(const struct dv_json *placed, struct dv_arena *arena)
{
    struct dv_json *seen = dv_json_new_object(arena);

    for (struct dv_json *node = dv_json_first(placed); node; node = dv_json_next(node)) {
        for (struct dv_json *id = dv_json_first(node); id; id = dv_json_next(id)) {
            struct dv_err err;
            dv_str text;

            if (dv_json_as_str(id, &text, &err))
                dv_json_set(seen, text, dv_json_new_null(arena), arena);
        }
    }
    return count(seen, arena);
}

static struct dv_json *count_held(const struct dv_json *held, struct dv_arena *arena)
{
    struct dv_json *counts = dv_json_new_object(arena);

    for (struct dv_json *one = dv_json_first(held); one; one = dv_json_next(one))
        dv_json_set(counts, dv_json_key(one), count_placed(one, arena), arena);
    return counts;
}

static struct dv_json *count_call(const struct dv_json *call, struct dv_arena *arena)
{
    static const char *const lists[] = {"ids", "available", "mustInclude", "answer"};
    struct dv_json *counts = dv_json_new_object(arena);
    struct dv_json *size = dv_json_get(call, DV_STR("size"));

    set_text(counts, "method", text_of(call, "method"), arena);
    if (size)
        set_member(counts, "size", dv_json_copy(size, arena), arena);
    for (size_t i = 0; i < DV_COUNT(lists); i++) {
        struct dv_json *list = dv_json_get(call, dv_str_from_c(lists[i]));

        if (list)
            dv_json_set(counts, dv_str_printf(arena, "%sCount", lists[i]), count(list, arena),
                        arena);
    }
    return counts;
}

static struct dv_json *count_calls(const struct dv_json *calls, struct dv_arena *arena)
{
    struct dv_json *all = dv_json_new_object(arena);

    for (struct dv_json *list = dv_json_first(calls); list; list = dv_json_next(list)) {
        struct dv_json *counts = dv_json_new_array(arena);

        for (struct dv_json *call = dv_json_first(list); call; call = dv_json_next(call))
            dv_json_append(counts, count_call(call, arena));
        dv_json_set(all, dv_json_key(list), counts, arena);
    }
    return all;
}

static void count_options(struct dv_json *result, struct dv_arena *arena)
{
    struct dv_json *options = dv_json_get(result, DV_STR("options"));
    struct dv_json *counts = dv_json_new_object(arena);

    if (!dv_json_is(options, DV_JSON_OBJECT))
        return;
    for (struct dv_json *list = dv_json_first(options); list; list = dv_json_next(list))
        dv_json_set(counts, dv_json_key(list), count(list, arena), arena);
    dv_json_remove(options);
    set_member(result, "optionCounts", counts, arena);
}

static void count_status(struct dv_json *result, struct dv_arena *arena)
{
    struct dv_json *status = dv_json_get(result, DV_STR("allocatedResourcesStatus"));

    if (!status)
        return;
    for (struct dv_json *list = dv_json_first(status); list; list = dv_json_next(list)) {
        for (struct dv_json *one = dv_json_first(list); one; one = dv_json_next(one)) {
            struct dv_json *ids = dv_json_get(one, DV_STR("resources"));

            set_member(one, "count", count(ids, arena), arena);
            dv_json_remove(ids);
        }
    }
}

struct dv_json *outcome_to_counts(const struct dv_json *outcome, struct dv_arena *arena)
{
    struct dv_json *counts = dv_json_copy(outcome, arena);
    struct dv_json *result = dv_json_get(counts, DV_STR("result"));
    struct dv_json *held = dv_json_get(counts, DV_STR("held"));
    struct dv_json *calls = dv_json_get(counts, DV_STR("calls"));
    struct dv_json *entries =
        dv_json_get(dv_json_get(counts, DV_STR("checkpoint")), DV_STR("entries"));

    count_options(result, arena);
    count_status(result, arena);
    if (held)
        dv_json_replace(held, count_held(held, arena));
    if (entries)
        dv_json_replace(entries, count_held(entries, arena));
    if (calls)
        dv_json_replace(calls, count_calls(calls, arena));
    return counts;
}
