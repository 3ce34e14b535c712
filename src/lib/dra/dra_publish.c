#include "lib/dra/dra_publish.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "lib/common/parts.h"
#include "lib/dra/dra_pool.h"
#include "lib/dra/dra_slices.h"
#include "resource/resource.h"
#include "resource/status.h"

#define BACKOFF_FIRST_MS 1000u
#define BACKOFF_MAX_MS 60000u
#define BACKOFF_JITTER_PER_MILLE 200u
/* How long an answer counts more than the view: a view that is further behind has lost it. */
#define WRITTEN_MS 60000u

/* An answer that the view does not show yet. */
struct written {
    dv_str name;
    struct dv_arena *arena;
    struct dv_object *now; /* NULL: deleted */
    uint64_t until_ms;
};

/* ---- what was written ---- */

static void forget(struct dv_lib_publisher *publisher, struct written *written)
{
    (void)dv_map_remove(&publisher->written, written->name);
    dv_object_unref(written->now);
    dv_arena_free(written->arena);
    free(written);
}

static void forget_old(struct dv_lib_publisher *publisher)
{
    uint64_t now_ms = dv_loop_now_ms(publisher->parts->loop);
    const struct dv_map_entry *entry;
    size_t at = 0;

    while ((entry = dv_map_next(&publisher->written, &at)) != NULL) {
        struct written *written = entry->value;

        if (written->until_ms <= now_ms)
            forget(publisher, written);
    }
}

void dv_lib_publisher_wrote(struct dv_lib_publisher *publisher, dv_str name, struct dv_object *now)
{
    const struct dv_object *shown = dv_view_get(publisher->view, DV_STR_NONE, name);
    struct written *written = dv_map_get(&publisher->written, name);

    if (written)
        forget(publisher, written);
    if (now ? shown && shown->version >= now->version : !shown)
        return; /* the view was faster */
    written = DV_ALLOC(struct written);
    written->arena = dv_arena_new();
    written->name = dv_str_copy(name, written->arena);
    written->now = now ? dv_object_ref(now) : NULL;
    written->until_ms = dv_loop_now_ms(publisher->parts->loop) + WRITTEN_MS;
    (void)dv_map_set(&publisher->written, written->name, written);
}

static bool is_of_pool(const struct dv_object *object, dv_str pool)
{
    return dv_str_eq(((const struct dv_api_resource_slice *)object->value)->spec.pool.name, pool);
}

/* The newest state of a slice: what the view shows, or what was written since. */
static struct dv_object *newest(const struct dv_lib_publisher *publisher, struct dv_object *shown)
{
    const struct written *written = dv_map_get(&publisher->written, shown->meta->name);

    if (!written)
        return shown;
    if (!written->now)
        return NULL;
    return written->now->version > shown->version ? written->now : shown;
}

struct dv_object **dv_lib_publisher_slices(struct dv_lib_publisher *publisher, dv_str pool,
                                           struct dv_arena *arena, size_t *n)
{
    DV_VEC(struct dv_object *) slices = {0};
    const struct dv_map_entry *entry;
    struct dv_object *shown;
    size_t at = 0;

    forget_old(publisher);
    while ((shown = dv_view_next(publisher->view, &at)) != NULL) {
        struct dv_object *object = newest(publisher, shown);

        if (object && is_of_pool(object, pool))
            *dv_vec_add_in(&slices, arena) = dv_object_ref(object);
    }
    at = 0;
    while ((entry = dv_map_next(&publisher->written, &at)) != NULL) {
        const struct written *written = entry->value;

        if (written->now && is_of_pool(written->now, pool) &&
            !dv_view_get(publisher->view, DV_STR_NONE, written->name))
            *dv_vec_add_in(&slices, arena) = dv_object_ref(written->now);
    }
    *n = slices.n;
    return slices.v;
}

/* ---- pools ---- */

static struct dv_lib_pool *find_pool(const struct dv_lib_publisher *publisher, dv_str name)
{
    struct dv_link *link;

    DV_LIST_EACH (&publisher->pools, link) {
        struct dv_lib_pool *pool = DV_CONTAINER(link, struct dv_lib_pool, link);

        if (dv_str_eq(pool->name, name))
            return pool;
    }
    return NULL;
}

static void look_at_all(struct dv_lib_publisher *publisher)
{
    struct dv_link *link;

    if (!dv_lib_publisher_is_ready(publisher))
        return;
    DV_LIST_EACH (&publisher->pools, link) {
        struct dv_lib_pool *pool = DV_CONTAINER(link, struct dv_lib_pool, link);

        dv_lib_pool_look(pool, pool->is_news ? 0 : publisher->options.correct_ms);
    }
}

bool dv_lib_publisher_is_ready(const struct dv_lib_publisher *publisher)
{
    const struct dv_lib_publisher_options *options = &publisher->options;

    return publisher->view && dv_view_is_synced(publisher->view) &&
           (options->owner_api_version.n == 0 || publisher->is_owner_known);
}

/* ---- the view ---- */

static void look_up(struct dv_lib_publisher *publisher);

/* Somebody else has deleted a slice. When its owner is gone, all of them go, and so would those
 * that are made in its place: its successor is looked up first. */
static void doubt_owner(struct dv_lib_publisher *publisher)
{
    if (!publisher->looks_up || !publisher->is_owner_known)
        return;
    publisher->is_owner_known = false;
    publisher->backoff_ms = BACKOFF_FIRST_MS;
    look_up(publisher);
}

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct dv_lib_publisher *publisher = ctx;
    const struct dv_object *object = now ? now : old;
    dv_str name = ((const struct dv_api_resource_slice *)object->value)->spec.pool.name;
    struct written *written = dv_map_get(&publisher->written, object->meta->name);
    bool is_deleted_by_us = written && !written->now;
    struct dv_lib_pool *pool;

    if (!now && !is_deleted_by_us)
        doubt_owner(publisher);
    if (written && (!now || (written->now && now->version >= written->now->version)))
        forget(publisher, written);
    if (publisher->options.only_pool.n > 0 && !dv_str_eq(publisher->options.only_pool, name))
        return;
    pool = find_pool(publisher, name);
    if (!pool)
        pool = dv_lib_pool_new(publisher, name); /* that nobody wants */
    dv_lib_pool_look(pool, publisher->options.correct_ms);
}

static void on_synced(void *ctx)
{
    look_at_all(ctx);
}

static void on_disturbed(void *ctx, const struct dv_err *err)
{
    struct dv_lib_publisher *publisher = ctx;
    struct dv_err problem;

    if (!err)
        return;
    problem = *err;
    (void)dv_wrap(&problem, "watching slices");
    publisher->options.failed(publisher->options.ctx, DV_STR_NONE, &problem, 0);
}

static bool open_view(struct dv_lib_publisher *publisher, struct dv_err *err)
{
    const struct dv_lib_publisher_options *options = &publisher->options;
    struct dv_view_options view = {
        .kind = dv_kind(DV_KIND_SLICE),
        .field_selector = dv_str_printf(publisher->arena, "spec.driver=%.*s,spec.nodeName=%.*s",
                                        DV_FMT(options->driver), DV_FMT(options->node)),
        .changed = on_changed,
        .synced = on_synced,
        .disturbed = on_disturbed,
        .ctx = publisher,
    };

    if (!publisher->view)
        publisher->view = dv_view_open(options->cluster, &view, err);
    return publisher->view;
}

/* ---- the node ---- */

static void on_lookup_timer(struct dv_timer *timer)
{
    look_up(DV_CONTAINER(timer, struct dv_lib_publisher, timer));
}

static void on_looked_up(struct dv_request *request, const struct dv_api_status *failure)
{
    struct dv_lib_publisher *publisher = DV_CONTAINER(request, struct dv_lib_publisher, lookup);
    struct dv_lib_publisher_options *options = &publisher->options;
    struct dv_loop *loop = publisher->parts->loop;
    struct dv_lib_parts *parts = publisher->parts;
    struct dv_err err;

    publisher->is_looking_up = false;
    if (publisher->is_closing) {
        dv_lib_part_closed(parts);
        return;
    }
    if (failure) {
        uint64_t pause_ms = dv_jitter(publisher->backoff_ms, BACKOFF_JITTER_PER_MILLE);

        dv_status_to_err(failure, &err);
        (void)dv_wrap(&err, "node %.*s", DV_FMT(request->name));
        publisher->backoff_ms = dv_u64_min(publisher->backoff_ms * 2, BACKOFF_MAX_MS);
        dv_timer_start(&publisher->timer, loop, dv_loop_now_ms(loop) + pause_ms, on_lookup_timer);
        options->failed(options->ctx, DV_STR_NONE, &err, pause_ms); /* may close */
    } else {
        if (!dv_str_eq(options->owner_uid, request->object->meta->uid))
            options->owner_uid = dv_str_copy(request->object->meta->uid, publisher->arena);
        publisher->is_owner_known = true;
        look_at_all(publisher);
    }
    dv_lib_part_closed(parts);
}

static void look_up(struct dv_lib_publisher *publisher)
{
    const struct dv_lib_publisher_options *options = &publisher->options;

    if (publisher->is_looking_up || options->owner_api_version.n == 0 || publisher->is_owner_known)
        return;
    publisher->lookup = (struct dv_request){
        .verb = DV_VERB_GET,
        .kind = dv_kind(DV_KIND_NODE),
        .name = options->owner_name,
        .done = on_looked_up,
    };
    publisher->is_looking_up = true;
    dv_lib_parts_add(publisher->parts);
    dv_request_start(options->cluster, &publisher->lookup);
}

/* ---- desired pools ---- */

static bool check_wanted(const struct dv_lib_publisher *publisher,
                         const struct dv_lib_wanted *wanted, size_t n, struct dv_err *err)
{
    dv_str only = publisher->options.only_pool;
    bool is_good = true;
    struct dv_map names;

    dv_map_init(&names);
    for (size_t i = 0; i < n && is_good; i++) {
        struct dv_lib_desired *desired = wanted[i].desired;

        if (only.n > 0 && !dv_str_eq(only, desired->pool))
            is_good = dv_fail(err, DV_INVALID_ARGUMENT, "pool %.*s: only %.*s is ours",
                              DV_FMT(desired->pool), DV_FMT(only));
        else if (publisher->options.node.n > 0 && desired->node_name.n == 0)
            is_good = dv_fail(err, DV_INVALID_ARGUMENT,
                              "pool %.*s is not of this node: publish it without one",
                              DV_FMT(desired->pool));
        else if (dv_map_set(&names, desired->pool, desired))
            is_good = dv_fail(err, DV_INVALID_ARGUMENT, "pool %.*s is there twice",
                              DV_FMT(desired->pool));
    }
    dv_map_fini(&names);
    return is_good;
}

static bool is_among(dv_str name, const struct dv_lib_wanted *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(wanted[i].desired->pool, name))
            return true;
    return false;
}

bool dv_lib_publisher_set(struct dv_lib_publisher *publisher, const struct dv_lib_wanted *wanted,
                          size_t n_wanted, struct dv_err *err)
{
    static const struct dv_lib_wanted nothing = {0};
    struct dv_link *link;

    if (!check_wanted(publisher, wanted, n_wanted, err) || !open_view(publisher, err)) {
        for (size_t i = 0; i < n_wanted; i++)
            dv_arena_free(wanted[i].arena);
        return false;
    }
    DV_LIST_EACH (&publisher->pools, link) {
        struct dv_lib_pool *pool = DV_CONTAINER(link, struct dv_lib_pool, link);

        if (!is_among(pool->name, wanted, n_wanted))
            dv_lib_pool_want(pool, &nothing);
    }
    for (size_t i = 0; i < n_wanted; i++) {
        struct dv_lib_pool *pool = find_pool(publisher, wanted[i].desired->pool);

        if (!pool)
            pool = dv_lib_pool_new(publisher, wanted[i].desired->pool);
        dv_lib_pool_want(pool, &wanted[i]);
    }
    if (!dv_timer_is_set(&publisher->timer))
        look_up(publisher);
    return true;
}

/* ---- life ---- */

void dv_lib_publisher_init(struct dv_lib_publisher *publisher, struct dv_lib_parts *parts,
                           const struct dv_lib_publisher_options *options)
{
    *publisher = (struct dv_lib_publisher){
        .parts = parts,
        .options = *options,
        .arena = dv_arena_new(),
        .backoff_ms = BACKOFF_FIRST_MS,
    };
    publisher->looks_up = options->owner_api_version.n > 0 && options->owner_uid.n == 0;
    publisher->is_owner_known = !publisher->looks_up;
    dv_list_init(&publisher->pools);
    dv_map_init(&publisher->written);
}

void dv_lib_publisher_close(struct dv_lib_publisher *publisher)
{
    struct dv_link *next;

    publisher->is_closing = true;
    dv_timer_cancel(&publisher->timer);
    if (publisher->is_looking_up)
        dv_request_cancel(publisher->options.cluster, &publisher->lookup);
    for (struct dv_link *link = publisher->pools.head.next; link != &publisher->pools.head;
         link = next) {
        next = link->next;
        dv_lib_pool_close(DV_CONTAINER(link, struct dv_lib_pool, link));
    }
    if (publisher->view)
        dv_view_close(publisher->view);
    publisher->view = NULL;
}

void dv_lib_publisher_fini(struct dv_lib_publisher *publisher)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    assert(dv_list_is_empty(&publisher->pools));
    while ((entry = dv_map_next(&publisher->written, &at)) != NULL)
        forget(publisher, entry->value);
    dv_map_fini(&publisher->written);
    dv_arena_free(publisher->arena);
}
