/* reconcile.c - leads from what the watcher tells to what is registered, by decisions and
 * operations. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "plugin/info.h"
#include "plugin/plugin_check.h"
#include "plugin/plugins.h"

/* The limit of sockets that are known, including those that are gone but still listed; each takes
 * about a kilobyte. */
#define SOCKETS_MAX 10000u

static void on_decide(struct dv_task *task);

void dv_plugin_decide_soon(struct dv_plugins *plugins)
{
    if (!plugins->is_closing)
        dv_task_post(&plugins->decide_task, plugins->loop, on_decide);
}

static void decide_later(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;

    dv_plugin_tell_later(entry);
    if (plugins->is_closing || dv_link_is_in(&entry->to_decide))
        return;
    dv_list_push(&plugins->to_decide, &entry->to_decide);
    dv_task_post(&plugins->decide_task, plugins->loop, on_decide);
}

/* ---- entries ---- */

static void clear_info(struct dv_plugin_entry *entry)
{
    dv_arena_reset(entry->arena);
    entry->info = (struct dv_plugin_info){.socket = entry->socket.path};
}

static struct dv_plugin_entry *new_entry(struct dv_plugins *plugins, dv_str path)
{
    struct dv_plugin_entry *entry = dv_alloc(sizeof(*entry) + path.n);

    memcpy(entry->path_text, path.p, path.n);
    entry->socket.path = (dv_str){entry->path_text, path.n};
    entry->plugins = plugins;
    entry->arena = dv_arena_new();
    clear_info(entry);
    return entry;
}

void dv_plugin_entry_free(struct dv_plugin_entry *entry)
{
    dv_plugin_forget(&entry->plugins->world, &entry->socket);
    dv_timer_cancel(&entry->timer);
    dv_link_remove(&entry->to_decide);
    dv_link_remove(&entry->in_queue);
    dv_link_remove(&entry->in_running);
    dv_link_remove(&entry->to_tell);
    dv_arena_free(entry->arena);
    free(entry);
}

static struct dv_plugin_entry *get_entry(const struct dv_plugins *plugins, dv_str path)
{
    struct dv_plugin_socket *socket = dv_plugin_world_get(&plugins->world, path);

    return socket ? DV_CONTAINER(socket, struct dv_plugin_entry, socket) : NULL;
}

/* ---- the watcher's news ---- */

bool dv_plugin_on_found(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    struct dv_plugins *plugins = DV_CONTAINER(owner, struct dv_plugins, watcher_owner);
    struct dv_plugin_entry *entry = get_entry(plugins, path);
    struct dv_err err;
    bool is_taken;

    if (!entry && plugins->world.sockets.n >= SOCKETS_MAX)
        return false;
    if (!entry)
        entry = new_entry(plugins, path);
    is_taken = dv_plugin_desire(&plugins->world, &entry->socket,
                                dv_clock_wall_ns(dv_loop_clock(plugins->loop)), &err);
    assert(is_taken); /* no file has an empty path */
    entry->n_attempts = 0;
    entry->listener = DV_PLUGIN_LISTENER_UNKNOWN;
    dv_log(DV_LOG_DEBUG, "plugin: socket seen", DV_F_STR("socket", path));
    decide_later(entry);
    return true;
}

void dv_plugin_on_lost(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    struct dv_plugins *plugins = DV_CONTAINER(owner, struct dv_plugins, watcher_owner);
    struct dv_plugin_entry *entry = get_entry(plugins, path);

    assert(entry); /* it was found before */
    dv_plugin_undesire(&entry->socket, dv_loop_now_ms(plugins->loop));
    dv_log(DV_LOG_DEBUG, "plugin: socket gone", DV_F_STR("socket", path));
    decide_later(entry);
}

/* ---- operations ---- */

static void on_stepped(struct dv_plugin_operation_owner *owner)
{
    dv_plugin_tell_later(DV_CONTAINER(owner, struct dv_plugin_entry, owner));
}

static void on_learned(struct dv_plugin_operation_owner *owner, const struct dv_plugin_info *info)
{
    struct dv_plugin_entry *entry = DV_CONTAINER(owner, struct dv_plugin_entry, owner);

    dv_arena_reset(entry->arena);
    dv_plugin_info_copy(info, entry->arena, &entry->info);
}

static void on_added(struct dv_plugin_operation_owner *owner,
                     const struct dv_plugin_handler *handler)
{
    struct dv_plugin_entry *entry = DV_CONTAINER(owner, struct dv_plugin_entry, owner);
    struct dv_err err;

    if (!dv_plugin_add_actual(&entry->socket, entry->socket.running, handler, &err))
        dv_log(DV_LOG_ERROR, "plugin: not recorded", DV_F_STR("socket", entry->socket.path),
               DV_F_ERR(&err)); /* it goes on, as the reference does */
}

static void on_removed(struct dv_plugin_operation_owner *owner)
{
    dv_plugin_remove_actual(&DV_CONTAINER(owner, struct dv_plugin_entry, owner)->socket);
}

static void note_failure(struct dv_plugin_entry *entry, const struct dv_err *err)
{
    struct dv_loop *loop = entry->plugins->loop;
    uint64_t now_ms = dv_loop_now_ms(loop);

    dv_plugin_fail(&entry->socket, now_ms, dv_random_u64());
    entry->last_err = *err;
    entry->last_err_wall_ns = dv_clock_wall_ns(dv_loop_clock(loop));
    dv_log(DV_LOG_WARN, "plugin: not registered; trying again",
           DV_F_STR("socket", entry->socket.path), DV_F_STR("type", entry->info.type),
           DV_F_STR("name", entry->info.name), DV_F_U64("attempts", entry->n_attempts),
           DV_F_CODE(err), DV_F_ERR(err), DV_F_U64("retry_ms", entry->socket.retry_ms - now_ms));
}

static void note_success(struct dv_plugin_entry *entry)
{
    dv_plugin_succeed(&entry->socket);
    dv_log(DV_LOG_INFO, "plugin: registered", DV_F_STR("socket", entry->socket.path),
           DV_F_STR("type", entry->info.type), DV_F_STR("name", entry->info.name),
           DV_F_STR("endpoint", entry->info.endpoint), DV_F_U64("attempts", entry->n_attempts));
}

static void on_done(struct dv_plugin_operation_owner *owner, const struct dv_err *err)
{
    struct dv_plugin_entry *entry = DV_CONTAINER(owner, struct dv_plugin_entry, owner);
    struct dv_plugins *plugins = entry->plugins;

    entry->operation = NULL;
    plugins->n_running--;
    plugins->n_retrying -= entry->is_retry ? 1 : 0;
    dv_plugin_end_turn(entry);
    if (!err)
        note_success(entry);
    else if (err->code == DV_CANCELLED)
        dv_plugin_give_up(&entry->socket);
    else
        note_failure(entry, err);
    if (plugins->is_closing) {
        dv_plugin_check_closed(plugins);
        return;
    }
    dv_plugin_decide_soon(plugins); /* there is room for another one now */
    decide_later(entry);
}

static void start_operation(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;

    entry->owner = (struct dv_plugin_operation_owner){
        .stepped = on_stepped,
        .learned = on_learned,
        .added = on_added,
        .removed = on_removed,
        .done = on_done,
    };
    entry->is_retry = entry->socket.backoff_ms > 0;
    entry->n_attempts++;
    entry->start_ms = dv_loop_now_ms(plugins->loop);
    entry->has_given_way = false;
    dv_list_push(&plugins->running, &entry->in_running);
    plugins->n_running++;
    plugins->n_retrying += entry->is_retry ? 1 : 0;
    dv_plugin_begin(&entry->socket, dv_loop_now_ms(plugins->loop));
    entry->operation = dv_plugin_operation_start(plugins->loop, entry->socket.path, &plugins->rules,
                                                 &entry->owner);
    dv_plugin_tell_later(entry);
}

static const char *reason_to_deregister(const struct dv_plugin_socket *socket)
{
    if (socket->desired == 0)
        return "socket gone";
    return socket->is_disallowed ? "not allowed any more" : "socket replaced";
}

static void deregister(struct dv_plugin_entry *entry)
{
    const struct dv_plugin_handler *handler = entry->socket.handler;

    dv_log(DV_LOG_INFO, "plugin: deregistered", DV_F_STR("socket", entry->socket.path),
           DV_F_STR("type", entry->info.type), DV_F_STR("name", entry->info.name),
           DV_F_C("reason", reason_to_deregister(&entry->socket)));
    /* Comes before the handler is told, as in the kubelet. */
    dv_plugin_remove_actual(&entry->socket);
    dv_plugin_succeed(&entry->socket);
    handler->deregister(handler->ctx, &entry->info);
}

void dv_plugins_judge_again(struct dv_plugins *plugins)
{
    const struct dv_map_entry *at_entry;
    struct dv_err err;

    for (size_t at = 0; (at_entry = dv_map_next(&plugins->world.sockets, &at)) != NULL;) {
        struct dv_plugin_entry *entry =
            DV_CONTAINER(at_entry->value, struct dv_plugin_entry, socket);

        if (entry->socket.desired && entry->socket.actual == entry->socket.desired &&
            !dv_plugin_is_allowed(plugins->rules.guard, &entry->info, &err)) {
            dv_plugin_desire_again(&plugins->world, &entry->socket);
            decide_later(entry);
        }
    }
}

/* ---- decisions ---- */

static void on_time(struct dv_timer *timer)
{
    decide_later(DV_CONTAINER(timer, struct dv_plugin_entry, timer));
}

/* Carries out a decision, except deregistering. */
static void carry_out(struct dv_plugin_entry *entry)
{
    struct dv_plugins *plugins = entry->plugins;
    struct dv_plugin_decision decision =
        dv_plugin_decide(&entry->socket, dv_loop_now_ms(plugins->loop));

    if (decision.action != DV_PLUGIN_DO_REGISTER)
        dv_link_remove(&entry->in_queue);
    if (decision.action != DV_PLUGIN_DO_WAIT)
        dv_timer_cancel(&entry->timer);
    switch (decision.action) {
    case DV_PLUGIN_DO_REGISTER:
        dv_plugin_queue(entry);
        break;
    case DV_PLUGIN_DO_CANCEL:
        dv_plugin_operation_cancel(entry->operation);
        break;
    case DV_PLUGIN_DO_WAIT:
        dv_timer_start(&entry->timer, plugins->loop, decision.at_ms, on_time);
        break;
    case DV_PLUGIN_DO_FORGET:
        dv_plugin_entry_free(entry);
        break;
    case DV_PLUGIN_DO_DEREGISTER: /* has been done just before */
    case DV_PLUGIN_DO_NOTHING:
        break;
    }
}

/* Acts in the reference's order: first everything is deregistered that has to go, then the rest. */
static void on_decide(struct dv_task *task)
{
    struct dv_plugins *plugins = DV_CONTAINER(task, struct dv_plugins, decide_task);
    struct dv_list now;
    struct dv_link *link;

    dv_list_init(&now);
    dv_list_move_all(&now, &plugins->to_decide);
    DV_LIST_EACH (&now, link) {
        struct dv_plugin_entry *entry = DV_CONTAINER(link, struct dv_plugin_entry, to_decide);

        /* Deregistering waits for no moment, so that the time does not matter here. */
        if (!plugins->is_closing &&
            dv_plugin_decide(&entry->socket, 0).action == DV_PLUGIN_DO_DEREGISTER)
            deregister(entry); /* the handler may close the plugins */
    }
    while ((link = dv_list_shift(&now)) != NULL)
        if (!plugins->is_closing)
            carry_out(DV_CONTAINER(link, struct dv_plugin_entry, to_decide));
    if (!plugins->is_closing)
        dv_plugin_take_turns(plugins, start_operation);
}
