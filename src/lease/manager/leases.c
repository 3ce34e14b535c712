#include "lease/lease.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "lease/manager/leases_state.h"
#include "store/store.h"

#define AWAITED_BYTES_MAX 512u
/* So long after the machine was booted drivers may still come, */
#define BOOTING_S 180
/* and so long after davitd was started those that it has itself publish their devices. */
#define STARTING_MS 10000u

bool dv_leases_is_booting(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_BOOTTIME, &now) == 0 && now.tv_sec < BOOTING_S;
}

bool dv_leases_may_come(const struct dv_leases *leases)
{
    return dv_leases_is_booting() ||
           dv_loop_now_ms(leases->loop) - leases->started_ms < STARTING_MS;
}

/* ---- one lease ---- */

struct dv_lease *dv_lease_new(struct dv_leases *leases, struct dv_arena *arena)
{
    struct dv_lease *lease = DV_ALLOC(struct dv_lease);

    lease->leases = leases;
    lease->arena = arena;
    lease->awaited = DV_STR("");
    dv_buf_init(&lease->awaited_text, AWAITED_BYTES_MAX);
    dv_list_init(&lease->listeners);
    dv_list_init(&lease->givers);
    return lease;
}

void dv_lease_free(struct dv_lease *lease)
{
    struct dv_leases *leases = lease->leases;
    struct dv_lease_user *user = lease->user;

    dv_lease_stop_watching(lease);
    dv_timer_cancel(&lease->wait_timer);
    dv_timer_cancel(&lease->end_timer);
    dv_timer_cancel(&lease->pause_timer);
    dv_task_cancel(&lease->task);
    dv_lease_queue_remove(&leases->queue, &lease->item);
    for (size_t i = 0; i < lease->item.n_wants; i++)
        dv_lease_pool_unref(&leases->queue, lease->item.wants[i].pool);
    dv_link_remove(&lease->link);
    dv_link_remove(&lease->of_user);
    if (dv_map_get(&leases->by_id, lease->spec.id) == lease)
        (void)dv_map_remove(&leases->by_id, lease->spec.id);
    dv_lease_drop_claim(lease);
    dv_buf_fini(&lease->awaited_text);
    dv_vec_fini(&lease->descendants);
    dv_arena_free(lease->owner_arena);
    dv_arena_free(lease->arena);
    free(lease);
    if (user && --user->n_leases == 0) {
        (void)dv_map_remove(&leases->users, dv_str_from_c(user->key));
        free(user);
    }
}

static struct dv_lease_user *find_user(struct dv_leases *leases, uint32_t uid)
{
    char key[sizeof(((struct dv_lease_user *)NULL)->key)];
    struct dv_lease_user *user;

    (void)snprintf(key, sizeof(key), "%u", uid); /* it has room for every number */
    user = dv_map_get(&leases->users, dv_str_from_c(key));
    if (user)
        return user;
    user = DV_ALLOC(struct dv_lease_user);
    user->uid = uid;
    (void)snprintf(user->key, sizeof(user->key), "%s", key);
    dv_list_init(&user->held);
    (void)dv_map_set(&leases->users, dv_str_from_c(user->key), user);
    return user;
}

void dv_lease_set_user(struct dv_lease *lease, uint32_t uid)
{
    lease->user = find_user(lease->leases, uid);
    lease->user->n_leases++;
}

void dv_lease_set_awaited(struct dv_lease *lease, const char *fmt, ...)
{
    va_list args;

    dv_buf_clear(&lease->awaited_text);
    va_start(args, fmt);
    dv_buf_vprintf(&lease->awaited_text, fmt, args);
    va_end(args);
    lease->awaited = dv_buf_str(&lease->awaited_text);
}

uint64_t dv_lease_device_number(dv_str driver, dv_str pool, dv_str device)
{
    return dv_hash(driver) * 3 + dv_hash(pool) * 5 + dv_hash(device) * 7;
}

bool dv_lease_could_use(const struct dv_lease *lease, dv_str driver, dv_str pool, dv_str device)
{
    uint64_t number = dv_lease_device_number(driver, pool, device);

    for (size_t i = 0; i < lease->item.n_wants; i++)
        if (dv_lease_pool_has(lease->item.wants[i].pool, number))
            return true;
    return false;
}

/* ---- telling ---- */

static void on_changed(struct dv_task *task)
{
    struct dv_leases *leases = DV_CONTAINER(task, struct dv_leases, changed_task);

    if (leases->options.changed)
        leases->options.changed(leases->options.ctx);
}

void dv_leases_tell_changed(struct dv_leases *leases)
{
    leases->version++;
    if (leases->is_started && !leases->is_closing)
        dv_task_post(&leases->changed_task, leases->loop, on_changed);
}

void dv_lease_tell(struct dv_lease *lease, enum dv_lease_news news)
{
    struct dv_list all;
    struct dv_link *link;

    /* A listener may leave while it is told. */
    dv_list_init(&all);
    dv_list_move_all(&all, &lease->listeners);
    while ((link = dv_list_shift(&all))) {
        struct dv_lease_listener *listener = DV_CONTAINER(link, struct dv_lease_listener, link);

        dv_list_push(&lease->listeners, link);
        listener->told(listener, news, NULL);
    }
}

void dv_lease_tell_last(struct dv_lease *lease, enum dv_lease_news news, const struct dv_err *err)
{
    struct dv_link *link;

    while ((link = dv_list_shift(&lease->listeners))) {
        struct dv_lease_listener *listener = DV_CONTAINER(link, struct dv_lease_listener, link);

        listener->told(listener, news, err); /* the listener's memory may go with it */
    }
    while ((link = dv_list_shift(&lease->givers))) {
        struct dv_lease_operation *giver = DV_CONTAINER(link, struct dv_lease_operation, link);

        giver->done(giver, news == DV_LEASE_ENDED ? NULL : err);
    }
}

/* ---- life ---- */

struct dv_leases *dv_leases_open(struct dv_loop *loop, const struct dv_leases_options *options,
                                 struct dv_err *err)
{
    struct dv_leases *leases = DV_ALLOC(struct dv_leases);

    leases->loop = loop;
    leases->options = *options;
    leases->n_changes = 1; /* nobody was refused yet */
    dv_map_init(&leases->by_id);
    dv_map_init(&leases->users);
    dv_list_init(&leases->held);
    dv_leases_init_saver(leases);
    if (dv_store_load(options->store, DV_TABLE_LEASES, dv_leases_load_row, leases, err))
        return leases;
    dv_leases_close(leases, NULL, NULL);
    return NULL;
}

void dv_leases_start(struct dv_leases *leases, struct dv_cluster *cluster, struct dv_sched *sched)
{
    struct dv_link *link = leases->held.head.next;

    leases->cluster = cluster;
    leases->sched = sched;
    leases->is_started = true;
    leases->started_ms = dv_loop_now_ms(leases->loop);
    while (link != &leases->held.head) {
        struct dv_lease *lease = DV_CONTAINER(link, struct dv_lease, link);

        link = link->next; /* taken first: a lease that is undone leaves the list later */
        dv_lease_go_on(lease);
    }
}

static void free_all(struct dv_leases *leases)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&leases->by_id, &at));)
        dv_lease_free(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&leases->users, &at));)
        free(entry->value);
    dv_task_cancel(&leases->look_task);
    dv_task_cancel(&leases->changed_task);
    dv_timer_cancel(&leases->tell_timer);
    dv_lease_queue_fini(&leases->queue);
    dv_saver_fini(&leases->saver);
    dv_vec_fini(&leases->dirty);
    dv_map_fini(&leases->by_id);
    dv_map_fini(&leases->users);
    free(leases);
}

static void on_close(struct dv_task *task)
{
    struct dv_leases *leases = DV_CONTAINER(task, struct dv_leases, close_task);
    dv_closed_fn *closed = leases->closed;
    void *ctx = leases->closed_ctx;

    if (leases->n_under_way > 0 || !dv_saver_is_idle(&leases->saver))
        return;
    free_all(leases);
    if (closed)
        closed(ctx);
}

void dv_leases_check_closed(struct dv_leases *leases)
{
    if (leases->is_closing)
        dv_task_post(&leases->close_task, leases->loop, on_close);
}

void dv_leases_close(struct dv_leases *leases, dv_closed_fn *closed, void *ctx)
{
    const struct dv_map_entry *entry;

    leases->closed = closed;
    leases->closed_ctx = ctx;
    leases->is_closing = true;
    for (size_t at = 0; (entry = dv_map_next(&leases->by_id, &at));)
        dv_lease_close(entry->value);
    leases->saver.is_closing = true;
    dv_leases_check_closed(leases);
}

/* ---- what can be seen ---- */

const char *dv_lease_state_name(enum dv_lease_state state)
{
    static const char *const names[] = {
        [DV_LEASE_STATE_WAITING] = "waiting",
        [DV_LEASE_STATE_TAKING] = "taking",
        [DV_LEASE_STATE_HELD] = "held",
        [DV_LEASE_STATE_ENDING] = "ending",
    };

    return names[state];
}

void dv_lease_get_view(const struct dv_lease *lease, struct dv_lease_view *view)
{
    *view = (struct dv_lease_view){.spec = &lease->spec, .awaited = lease->awaited};
    if (!lease->is_recorded) {
        view->state = DV_LEASE_STATE_WAITING;
        view->place = dv_lease_queue_place(&lease->leases->queue, &lease->item);
    } else if (dv_lease_is_held(lease)) {
        view->state = DV_LEASE_STATE_HELD;
    } else {
        view->state = dv_lease_is_ending(lease) ? DV_LEASE_STATE_ENDING : DV_LEASE_STATE_TAKING;
    }
}

size_t dv_leases_list(const struct dv_leases *leases, struct dv_arena *arena,
                      const struct dv_lease ***list)
{
    const struct dv_lease **made =
        DV_NEW_ARRAY(arena, const struct dv_lease *, leases->n_held + leases->queue.items.n);
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&leases->held, link)
        made[n++] = DV_CONTAINER(link, struct dv_lease, link);
    for (size_t i = 0; i < leases->queue.items.n; i++)
        made[n++] = DV_CONTAINER(leases->queue.items.v[i], struct dv_lease, item);
    *list = made;
    return n;
}

const struct dv_lease *dv_leases_find(const struct dv_leases *leases, dv_str id)
{
    return dv_map_get(&leases->by_id, id);
}

const struct dv_lease *dv_lease_of(const struct dv_lease_listener *listener)
{
    return listener->lease;
}

size_t dv_leases_n_waiting(const struct dv_leases *leases)
{
    return leases->queue.items.n;
}
