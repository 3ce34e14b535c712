#include "plugin/plugin_state.h"

#include <assert.h>

#include "base/err.h"
#include "base/num.h"

/* A pause of n ms becomes up to n / SPREAD_FRACTION longer. */
#define SPREAD_FRACTION 10u

void dv_plugin_world_init(struct dv_plugin_world *world)
{
    dv_map_init(&world->sockets);
    world->last_sighting = 0;
}

void dv_plugin_world_fini(struct dv_plugin_world *world)
{
    dv_map_fini(&world->sockets);
}

struct dv_plugin_socket *dv_plugin_world_get(const struct dv_plugin_world *world, dv_str path)
{
    return dv_map_get(&world->sockets, path);
}

static bool check_path(const struct dv_plugin_socket *socket, struct dv_err *err)
{
    return socket->path.n > 0 || dv_fail(err, DV_INVALID_ARGUMENT, "socket path is empty");
}

bool dv_plugin_desire(struct dv_plugin_world *world, struct dv_plugin_socket *socket,
                      uint64_t wall_ns, struct dv_err *err)
{
    if (!check_path(socket, err))
        return false;
    socket->desired = ++world->last_sighting;
    socket->desired_wall_ns = wall_ns;
    socket->is_disallowed = false;
    if (socket->last_start_ms > 0)
        socket->not_before_ms = socket->last_start_ms + DV_PLUGIN_PERIOD_MS;
    /* The map may have this socket already. */
    (void)dv_map_set(&world->sockets, socket->path, socket);
    return true;
}

void dv_plugin_desire_again(struct dv_plugin_world *world, struct dv_plugin_socket *socket)
{
    assert(socket->desired != 0);
    socket->desired = ++world->last_sighting;
    socket->is_disallowed = true;
}

void dv_plugin_undesire(struct dv_plugin_socket *socket, uint64_t now_ms)
{
    socket->desired = 0;
    socket->gone_ms = now_ms;
}

bool dv_plugin_add_actual(struct dv_plugin_socket *socket, uint64_t sighting,
                          const struct dv_plugin_handler *handler, struct dv_err *err)
{
    if (!check_path(socket, err))
        return false;
    socket->actual = sighting;
    socket->handler = handler;
    return true;
}

void dv_plugin_remove_actual(struct dv_plugin_socket *socket)
{
    socket->actual = 0;
    socket->handler = NULL;
    socket->is_disallowed = false;
}

bool dv_plugin_is_actual(const struct dv_plugin_socket *socket, uint64_t sighting)
{
    return socket->actual != 0 && socket->actual == sighting;
}

void dv_plugin_forget(struct dv_plugin_world *world, struct dv_plugin_socket *socket)
{
    assert(socket->running == 0);
    (void)dv_map_remove(&world->sockets, socket->path); /* it may never have been desired */
}

void dv_plugin_begin(struct dv_plugin_socket *socket, uint64_t now_ms)
{
    assert(socket->running == 0 && socket->desired != 0);
    socket->running = socket->desired;
    socket->last_start_ms = now_ms;
}

void dv_plugin_succeed(struct dv_plugin_socket *socket)
{
    socket->running = 0;
    socket->backoff_ms = 0;
    socket->retry_ms = 0;
}

void dv_plugin_fail(struct dv_plugin_socket *socket, uint64_t now_ms, uint64_t spread)
{
    uint64_t delay_ms = DV_PLUGIN_BACKOFF_FIRST_MS;

    if (socket->backoff_ms > 0)
        delay_ms = dv_u64_min(socket->backoff_ms * 2, DV_PLUGIN_BACKOFF_MAX_MS);
    socket->running = 0;
    socket->backoff_ms = delay_ms;
    socket->retry_ms = now_ms + delay_ms + spread % (delay_ms / SPREAD_FRACTION + 1);
}

void dv_plugin_give_up(struct dv_plugin_socket *socket)
{
    socket->running = 0;
}

static struct dv_plugin_decision act_from(uint64_t at_ms, uint64_t now_ms,
                                          enum dv_plugin_action action)
{
    if (now_ms < at_ms)
        return (struct dv_plugin_decision){DV_PLUGIN_DO_WAIT, at_ms};
    return (struct dv_plugin_decision){action, 0};
}

struct dv_plugin_decision dv_plugin_decide(const struct dv_plugin_socket *socket, uint64_t now_ms)
{
    const struct dv_plugin_decision rest = {DV_PLUGIN_DO_NOTHING, 0};

    if (socket->running)
        return socket->running == socket->desired
                   ? rest
                   : (struct dv_plugin_decision){DV_PLUGIN_DO_CANCEL, 0};
    if (socket->actual)
        return socket->actual == socket->desired
                   ? rest
                   : (struct dv_plugin_decision){DV_PLUGIN_DO_DEREGISTER, 0};
    if (socket->desired)
        return act_from(dv_u64_max(socket->retry_ms, socket->not_before_ms), now_ms,
                        DV_PLUGIN_DO_REGISTER);
    /* The back-off may last longer than the socket is listed. It is kept until then, so that a
     * socket that comes back does not escape it. */
    return act_from(dv_u64_max(socket->gone_ms + DV_PLUGIN_GONE_LISTED_MS, socket->retry_ms),
                    now_ms, DV_PLUGIN_DO_FORGET);
}
