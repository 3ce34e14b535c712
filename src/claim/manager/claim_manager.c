/* claim_manager.c - opens and closes the manager of claims, and ties its parts together: drivers
 * that register, operations on claims, the saver, and what others are told when something
 * changes. */
#include "claim/claim_manager.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "claim/manager/claim_manager_state.h"
#include "store/store.h"

const double dv_claim_seconds_bounds[DV_CLAIM_SECONDS_BOUNDS] = {
    0.1,      0.153413, 0.235355, 0.361064,  0.553918,  0.849781,  1.303673, 2,
    3.068255, 4.707094, 7.221282, 11.078366, 16.995625, 26.073454, 40,
};

static void on_changed(struct dv_task *task)
{
    struct dv_claim_manager *claims = DV_CONTAINER(task, struct dv_claim_manager, changed_task);

    claims->options.changed(claims->options.ctx);
}

void dv_claim_manager_tell_changed(struct dv_claim_manager *claims)
{
    if (claims->options.changed && !claims->is_closing)
        dv_task_post(&claims->changed_task, claims->loop, on_changed);
}

struct dv_claim_state *dv_claim_manager_state(struct dv_claim_manager *claims)
{
    return claims->state;
}

/* The epoch of a driver, which changes whenever it comes, comes back or goes; 0: no driver of that
 * name is connected. */
static uint64_t driver_epoch(const struct dv_claim_manager *claims, dv_str driver)
{
    struct dv_err err;
    const struct dv_dra_instance *instance = dv_dra_choose(claims->drivers, driver, &err);

    return instance && instance->is_connected ? instance->epoch : 0;
}

uint64_t dv_claim_manager_epoch_of_pod(const struct dv_claim_manager *claims, dv_str pod_uid)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_claim **of_pod;
    size_t n = dv_claim_of_pod(claims->state, pod_uid, arena, &of_pod);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += dv_claim_epoch(claims, of_pod[i]);
    return sum;
}

uint64_t dv_claim_epoch(const struct dv_claim_manager *claims, const struct dv_claim *claim)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < claim->record.n_drivers; i++)
        sum += driver_epoch(claims, claim->record.drivers[i].name);
    return sum;
}

const struct dv_dra_drivers *dv_claim_manager_drivers(const struct dv_claim_manager *claims)
{
    return claims->drivers;
}

/* ---- the end ---- */

static void free_claims(struct dv_claim_manager *claims)
{
    dv_saver_fini(&claims->saver);
    dv_arena_free(claims->chores.arena);
    dv_map_fini(&claims->wipes);
    dv_dra_drivers_free(claims->drivers);
    dv_claim_state_free(claims->state);
    free(claims);
}

static void on_close_task(struct dv_task *task)
{
    struct dv_claim_manager *claims = DV_CONTAINER(task, struct dv_claim_manager, close_task);
    dv_closed_fn *closed = claims->closed;
    void *ctx = claims->closed_ctx;

    if (!dv_list_is_empty(&claims->instances) || !dv_list_is_empty(&claims->operations) ||
        claims->wipes.n > 0 || !dv_claim_chores_are_idle(claims) ||
        !dv_saver_is_idle(&claims->saver))
        return;
    free_claims(claims);
    if (closed)
        closed(ctx);
}

void dv_claim_manager_check_closed(struct dv_claim_manager *claims)
{
    if (claims->is_closing)
        dv_task_post(&claims->close_task, claims->loop, on_close_task);
}

void dv_claim_manager_close(struct dv_claim_manager *claims, dv_closed_fn *closed, void *ctx)
{
    struct dv_link *link;
    struct dv_link *next;

    assert(!claims->is_closing);
    claims->is_closing = true;
    claims->saver.is_closing = true;
    claims->closed = closed;
    claims->closed_ctx = ctx;
    dv_task_cancel(&claims->changed_task);
    dv_claim_chores_stop(claims);
    DV_LIST_EACH (&claims->operations, link) {
        dv_claim_manager_cancel(DV_CONTAINER(link, struct dv_claim_operation, priv.link));
    }
    for (link = claims->instances.head.next; link != &claims->instances.head; link = next) {
        next = link->next;
        dv_instance_close(DV_CONTAINER(link, struct dv_instance, link));
    }
    dv_claim_manager_stop_wiping(claims);
    dv_saver_later(&claims->saver); /* writes changes that no operation waited for */
    dv_claim_manager_check_closed(claims);
}

/* ---- saving ---- */

static size_t take_changes(void *ctx, struct dv_arena *arena, const struct dv_row_change **changes)
{
    return dv_claim_take_changes(((struct dv_claim_manager *)ctx)->state, arena, changes);
}

static void on_rested(void *ctx)
{
    dv_claim_manager_check_closed(ctx);
}

static void init_saver(struct dv_claim_manager *claims)
{
    struct dv_saver_options options = {
        .loop = claims->loop,
        .store = claims->options.store,
        .table = claims->options.table,
        .what = "claims",
        .take = take_changes,
        .rested = on_rested,
        .ctx = claims,
    };

    dv_saver_init(&claims->saver, &options);
}

void dv_claim_manager_save(struct dv_claim_manager *claims, struct dv_save *save)
{
    dv_saver_start(&claims->saver, save);
}

void dv_claim_manager_save_all(struct dv_claim_manager *claims)
{
    dv_claim_rewrite(claims->state);
    dv_saver_later(&claims->saver);
}

const struct dv_err *dv_claim_manager_store_error(const struct dv_claim_manager *claims)
{
    return dv_saver_error(&claims->saver);
}

/* ---- the beginning ---- */

static bool load_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct dv_claim_manager *claims = ctx;

    return dv_claim_load(claims->state, row->key, row->value, err);
}

static struct dv_claim_manager *new_claims(struct dv_loop *loop,
                                           const struct dv_claim_manager_options *options)
{
    struct dv_claim_opts opts = {.boot_id = options->boot_id, .is_strict = options->is_strict};
    dv_str node = options->node_name;
    struct dv_claim_manager *claims = dv_alloc(sizeof(*claims) + node.n + 1);

    if (node.n > 0)
        memcpy(claims->text, node.p, node.n);
    claims->loop = loop;
    claims->options = *options;
    claims->options.node_name = (dv_str){claims->text, node.n};
    claims->options.boot_id = DV_STR_NONE; /* the state has a copy; the caller's text may go */
    claims->state = dv_claim_state_new(&opts);
    claims->drivers = dv_dra_drivers_new();
    dv_list_init(&claims->instances);
    dv_list_init(&claims->operations);
    dv_list_init(&claims->waiting);
    dv_list_init(&claims->chores.running);
    dv_map_init(&claims->wipes);
    init_saver(claims);
    return claims;
}

struct dv_claim_manager *dv_claim_manager_open(struct dv_loop *loop,
                                               const struct dv_claim_manager_options *options,
                                               struct dv_err *err)
{
    struct dv_claim_manager *claims = new_claims(loop, options);

    if (!dv_store_load(options->store, options->table, load_row, claims, err)) {
        free_claims(claims);
        return NULL;
    }
    if (options->cluster)
        dv_claim_manager_wipe_node(claims);
    return claims;
}

void dv_claim_manager_connect(struct dv_claim_manager *claims, struct dv_cluster *cluster)
{
    assert(!claims->options.cluster);
    claims->options.cluster = cluster;
    dv_claim_manager_wipe_node(claims);
}
