/* cluster_list.c - lists objects in the order of their keys, in pages, as of now or of an older
 * version. An older state is made from the current one: what has changed since is found in the
 * history, and shown as it was. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/embedded.h"
#include "cluster/embedded/engine.h"
#include "cluster/objects/collection.h"
#include "cluster/objects/continue_token.h"
#include "cluster/objects/history.h"
#include "resource/object_pool.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/status.h"

/* The state of an object at the version of the list, when it has changed since. */
struct past {
    dv_str key;
    struct dv_object *object; /* NULL: it was not there */
};

struct list {
    const struct dv_list_query *query;
    struct dv_embedded *embedded;
    struct dv_collection *collection;
    struct dv_arena *arena;
    struct dv_label_selector *labels;
    struct dv_field_selector *fields;
    bool is_selecting; /* not all objects are wanted: only then they are looked at */
    uint64_t version;  /* the version that the list shows */
    dv_str after;      /* the key after which the page begins; empty: at the first */
    DV_VEC(struct past) pasts;
    size_t next_past;
    struct dv_list_page *page;
    DV_VEC(struct dv_object *) objects;
    dv_str last_key; /* of the last object on the page, for the token of the next */
    uint64_t limit;  /* 0: none */
    bool is_full;
    uint64_t n_remaining;
};

/* ---- what is asked for ---- */

static bool parse_selectors(struct list *list, struct dv_api_status **failure)
{
    const struct dv_list_query *query = list->query;
    dv_str group = query->version ? query->version->group : query->kind->versions[0].group;
    struct dv_err err;

    list->labels = dv_label_selector_parse(query->label_selector, list->arena, &err);
    if (list->labels)
        list->fields =
            dv_field_selector_parse(query->kind, group, query->field_selector, list->arena, &err);
    if (list->fields) {
        list->is_selecting =
            !dv_label_selector_is_empty(list->labels) || !dv_field_selector_is_empty(list->fields);
        return true;
    }
    *failure = dv_status_bad_request(list->arena, "%s", dv_err_text(&err));
    return false;
}

static bool parse_token(struct list *list, struct dv_api_status **failure)
{
    const struct dv_list_query *query = list->query;
    struct dv_continue token = {0};
    struct dv_err err;

    if (query->resource_version.n > 0 && !dv_str_eq(query->resource_version, DV_STR("0"))) {
        *failure = dv_status_bad_request(
            list->arena, "specifying resource version is not allowed when using continue");
        return false;
    }
    if (!dv_continue_parse(query->continue_token, list->arena, &token, &err)) {
        *failure = dv_status_bad_request(list->arena, "invalid continue token: %s", err.msg);
        return false;
    }
    list->after = token.after;
    if (token.version == DV_TOKEN_NEWEST)
        return true;
    if (token.version > 0 && (uint64_t)token.version <= list->embedded->version &&
        (uint64_t)token.version >= list->collection->history.floor) {
        list->version = (uint64_t)token.version;
        return true;
    }
    *failure = dv_status_expired(
        list->arena,
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.");
    token.version = DV_TOKEN_NEWEST;
    (*failure)->metadata.continue_ = dv_continue_print(&token, list->arena);
    return false;
}

static bool parse_version(struct list *list, struct dv_api_status **failure)
{
    const struct dv_list_query *query = list->query;
    uint64_t version;

    list->version = list->embedded->version;
    if (query->continue_token.n > 0)
        return parse_token(list, failure);
    if (query->resource_version.n == 0)
        return true;
    if (!dv_str_to_u64(query->resource_version, &version)) {
        *failure = dv_status_bad_request(
            list->arena,
            "invalid resource version: resourceVersion: Invalid value: \"%.*s\": "
            "strconv.ParseUint: parsing \"%.*s\": invalid syntax",
            DV_FMT(query->resource_version), DV_FMT(query->resource_version));
        return false;
    }
    if (version > list->embedded->version) {
        *failure = dv_status_too_large_version(version, list->embedded->version, list->arena);
        return false;
    }
    if (query->match != DV_MATCH_EXACT)
        return true;
    if (version < list->collection->history.floor) {
        *failure =
            dv_status_expired(list->arena, "The resourceVersion for the provided list is too old.");
        return false;
    }
    list->version = version;
    return true;
}

/* ---- the past ---- */

static dv_str key_of(const struct dv_object_names *names, struct dv_arena *arena)
{
    const dv_str parts[] = {names->namespace, DV_STR("/"), names->name};

    return names->namespace.n == 0 ? names->name : dv_str_concat(parts, DV_COUNT(parts), arena);
}

static int by_key(const void *a, const void *b)
{
    return dv_str_cmp(((const struct past *)a)->key, ((const struct past *)b)->key);
}

/* Gathers the states, at the list's version, of all objects that have changed since, in the
 * order of keys. Going forward through the history, the first change of a name tells what it was
 * before. */
static void gather_pasts(struct list *list)
{
    const struct dv_history *history = &list->collection->history;
    struct dv_map seen;

    dv_map_init(&seen);
    for (uint64_t number = dv_history_after(history, list->version); number < history->end;
         number++) {
        const struct dv_change *change = dv_history_get(history, number);
        struct dv_object_names names = dv_object_names(change->old ? change->old : change->now);
        dv_str key;

        if (list->query->namespace.n > 0 && !dv_str_eq(names.namespace, list->query->namespace))
            continue;
        key = key_of(&names, list->arena);
        if (dv_str_cmp(key, list->after) <= 0 || dv_map_get(&seen, key))
            continue;
        /* The value is of no use: only that the key is there counts. */
        (void)dv_map_set(&seen, key, &seen);
        *dv_vec_add_in(&list->pasts, list->arena) =
            (struct past){.key = key, .object = change->old};
    }
    dv_map_fini(&seen);
    if (list->pasts.n > 0)
        qsort(list->pasts.v, list->pasts.n, sizeof(list->pasts.v[0]), by_key);
}

/* ---- the page ---- */

static bool wants(const struct list *list, struct dv_object *object)
{
    return dv_object_is_selected(object, list->labels, list->fields);
}

/* Adds an object to the page. False: the page is full, and nothing more needs to be known. */
static bool add(struct list *list, dv_str key, struct dv_object *object)
{
    if (list->is_selecting && !wants(list, object))
        return true;
    if (list->limit > 0 && list->objects.n == list->limit) {
        list->is_full = true;
        list->n_remaining++;
        /* The number of remaining objects is told only without selectors, so only then they are
         * counted. */
        return !list->is_selecting;
    }
    *dv_vec_add_in(&list->objects, list->arena) = object;
    list->last_key = key;
    return true;
}

/* Adds the objects before `key` (all that are left when it is empty) that were there at the list's
 * version and are gone now. */
static bool add_pasts(struct list *list, dv_str key)
{
    while (list->next_past < list->pasts.n) {
        const struct past *past = &list->pasts.v[list->next_past];

        if (key.n > 0 && dv_str_cmp(past->key, key) >= 0)
            break;
        list->next_past++;
        if (past->object && !add(list, past->key, past->object))
            return false;
    }
    return true;
}

static bool add_entry(struct list *list, const struct dv_entry *entry)
{
    dv_str key = dv_entry_key(entry);
    const struct past *past;

    if (list->pasts.n == 0)
        return add(list, key, entry->object);
    if (!add_pasts(list, key))
        return false;
    past = list->next_past < list->pasts.n ? &list->pasts.v[list->next_past] : NULL;
    if (!past || !dv_str_eq(past->key, key))
        return add(list, key, entry->object);
    list->next_past++;
    return !past->object || add(list, key, past->object);
}

/* Whether a field selector asks for a single name: then the other objects need not be looked at. */
static bool is_single(const struct list *list, dv_str *name)
{
    return dv_field_selector_demands(list->fields, DV_STR("metadata.name"), name) &&
           (list->query->namespace.n > 0 || !list->query->kind->is_namespaced) &&
           list->pasts.n == 0 && list->after.n == 0;
}

static void walk(struct list *list)
{
    struct dv_collection_range range;
    struct dv_entry *entry;
    dv_str name;

    if (is_single(list, &name)) {
        entry = dv_collection_get(list->collection, list->query->namespace, name);
        if (entry && entry->object)
            /* There is only one object to add. */
            (void)add(list, dv_entry_key(entry), entry->object);
        return;
    }
    range = list->after.n > 0
                ? dv_collection_range_after(list->collection, list->query->namespace, list->after)
                : dv_collection_range(list->collection, list->query->namespace);
    while ((entry = dv_collection_range_next(&range)) != NULL)
        if (!add_entry(list, entry))
            return;
    (void)add_pasts(list, DV_STR_NONE); /* those behind the last object that is still there */
}

bool dv_embedded_list(struct dv_embedded *embedded, const struct dv_list_query *query,
                      struct dv_arena *arena, struct dv_list_page *page,
                      struct dv_api_status **failure)
{
    struct list list = {.query = query,
                        .embedded = embedded,
                        .collection = dv_engine_collection(embedded, query->kind),
                        .arena = arena};

    if (!parse_selectors(&list, failure) || !parse_version(&list, failure))
        return false;
    /* With resourceVersion=0, "any version will do", the limit is ignored: the reference answers
     * from its cache and does the same. */
    if (query->continue_token.n > 0 || !dv_str_eq(query->resource_version, DV_STR("0")))
        list.limit = query->limit;
    if (list.version < embedded->version)
        gather_pasts(&list);
    walk(&list);
    *page = (struct dv_list_page){
        .objects = list.objects.v, .n_objects = list.objects.n, .version = list.version};
    if (list.is_full) {
        struct dv_continue token = {.version = (int64_t)list.version, .after = list.last_key};

        page->continue_token = dv_continue_print(&token, arena);
        page->has_remaining = !list.is_selecting;
        page->n_remaining = page->has_remaining ? list.n_remaining : 0;
    }
    return true;
}
