/* turns.c - whose turn it is when more sockets want to be registered than there is room for.
 *
 *     newcomers --.                  .--> running --> ended
 *                  >-- one of both --|
 *     retries ----'    ends          '--> parked: its listener has its share of what runs
 *
 * Sockets in the registry cost nothing to make, and one that accepts and is silent takes its time.
 * So nobody's place depends on how many there are: whoever listens (the process, as the kernel
 * recorded it) has a share, and what takes long ends early when others wait. */
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "loop/loop.h"
#include "plugin/operation.h"
#include "plugin/plugin.h"
#include "plugin/plugin_state.h"
#include "plugin/plugins.h"

/* The limit of operations for plugins that have failed before: the rest is left for newcomers. */
#define RETRIES_MAX (DV_PLUGIN_OPERATIONS_MAX / 2)
/* With fewer operations than this nobody is asked who listens: that takes one more connection, and
 * there is room. */
#define CROWD (DV_PLUGIN_OPERATIONS_MAX / 2)
/* The limit for one listening process in a crowd: a container with all drivers of a node has a
 * dozen sockets. */
#define LISTENER_MAX (DV_PLUGIN_OPERATIONS_MAX / 4)
/* How many sockets are asked for their listener in one turn of the loop: each takes a connection,
 * some 20 us. */
#define LOOKS_MAX 128u
/* The limits while others wait. For the connection: a living plugin takes milliseconds. For the
 * handler: it connects to a service that may only just start. */
#define CONNECT_MS 1000u
#define REGISTER_MS 5000u

void dv_plugin_queue(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;

    if (!dv_link_is_in(&entry->in_queue))
        dv_list_push(entry->socket.backoff_ms > 0 ? &plugins->retries : &plugins->newcomers,
                     &entry->in_queue);
}

/* Takes the oldest and the newest entry in turn: a newcomer does not wait for all who came before,
 * and nobody waits for ever because others come. */
static struct dv_plugin_entry *take(struct dv_plugins *plugins, struct dv_list *queue)
{
    struct dv_link *link;

    if (dv_list_is_empty(queue))
        return NULL;
    plugins->takes_oldest = !plugins->takes_oldest;
    link = plugins->takes_oldest ? queue->head.prev : queue->head.next;
    dv_link_remove(link);
    return DV_CONTAINER(link, struct dv_plugin_entry, in_queue);
}

static struct dv_plugin_entry *take_next(struct dv_plugins *plugins)
{
    struct dv_plugin_entry *entry = take(plugins, &plugins->newcomers);

    if (!entry && plugins->n_retrying < RETRIES_MAX)
        entry = take(plugins, &plugins->retries);
    return entry;
}

static void look_who_listens(struct dv_plugin_entry *entry)
{
    struct dv_peer peer;
    struct dv_err err;

    /* Sockets without a known listener have one share together. */
    entry->listener = dv_socket_listener(entry->socket.path, &peer, &err) &&
                              peer.pid != DV_PLUGIN_LISTENER_UNKNOWN
                          ? peer.pid
                          : DV_PLUGIN_LISTENER_NONE;
}

static size_t n_running_of(const struct dv_plugins *plugins, pid_t listener)
{
    struct dv_link *link;
    size_t n = 0;

    DV_LIST_EACH (&plugins->running, link)
        n += DV_CONTAINER(link, struct dv_plugin_entry, in_running)->listener == listener;
    return n;
}

/* Whether the entry's listener may have one more operation. False: the entry waits until one of
 * them ends. */
static bool has_share(struct dv_plugin_entry *entry)
{
    if (entry->plugins->n_running < CROWD)
        return true;
    look_who_listens(entry);
    if (n_running_of(entry->plugins, entry->listener) < LISTENER_MAX)
        return true;
    if (entry->listener == DV_PLUGIN_LISTENER_NONE)
        dv_list_push_front(&entry->plugins->parked, &entry->in_queue); /* may be about to listen */
    else
        dv_list_push(&entry->plugins->parked, &entry->in_queue);
    return false;
}

void dv_plugin_end_turn(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;
    struct dv_link *link;

    dv_link_remove(&entry->in_running);
    DV_LIST_EACH (&plugins->parked, link) {
        struct dv_plugin_entry *next = DV_CONTAINER(link, struct dv_plugin_entry, in_queue);

        if (next->listener != entry->listener && plugins->n_running >= CROWD)
            continue;
        dv_link_remove(&next->in_queue);
        dv_plugin_queue(next);
        return;
    }
}

static void on_turn_timer(struct dv_timer *timer)
{
    dv_plugin_decide_soon(DV_CONTAINER(timer, struct dv_plugins, turn_timer));
}

/* Makes operations that have had their time give way. When there are none, this runs again when the
 * first one will have had its time. */
static void make_room(struct dv_plugins *plugins)
{
    uint64_t now_ms = dv_loop_now_ms(plugins->loop);
    uint64_t next_ms = UINT64_MAX;
    struct dv_link *link = plugins->running.head.next;

    while (link != &plugins->running.head) {
        struct dv_plugin_entry *entry = DV_CONTAINER(link, struct dv_plugin_entry, in_running);
        uint64_t end_ms =
            entry->start_ms +
            (dv_plugin_operation_is_registering(entry->operation) ? REGISTER_MS : CONNECT_MS);

        link = link->next; /* the operation ends later, but this loop does not rely on that */
        if (entry->has_given_way)
            continue;
        if (end_ms <= now_ms) {
            entry->has_given_way = dv_plugin_operation_give_way(entry->operation);
            end_ms = now_ms + CONNECT_MS; /* the limit of the step that it is at */
        }
        if (!entry->has_given_way)
            next_ms = dv_u64_min(next_ms, end_ms);
    }
    if (next_ms != UINT64_MAX)
        dv_timer_start(&plugins->turn_timer, plugins->loop, next_ms, on_turn_timer);
}

void dv_plugin_take_turns(struct dv_plugins *plugins, void (*start)(struct dv_plugin_entry *entry))
{
    size_t n_looks = 0;

    while (plugins->n_running < DV_PLUGIN_OPERATIONS_MAX) {
        struct dv_plugin_entry *entry = take_next(plugins);

        if (!entry)
            break;
        if (n_looks++ == LOOKS_MAX) { /* the loop goes on with other things first */
            dv_plugin_queue(entry);
            dv_plugin_decide_soon(plugins);
            break;
        }
        if (has_share(entry))
            start(entry);
    }
    if (!dv_list_is_empty(&plugins->newcomers) || !dv_list_is_empty(&plugins->retries) ||
        !dv_list_is_empty(&plugins->parked))
        make_room(plugins);
    else
        dv_timer_cancel(&plugins->turn_timer);
}
