/* plugin_state.h - keeps for every socket what is desired and what is registered, and decides what
 * to do about the difference. Pure: values in, decisions out. Each time that a socket is found new
 * it gets a number, its sighting, which tells a plugin from the one that was there before it. */
#ifndef DV_PLUGIN_STATE_H
#define DV_PLUGIN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/map.h"
#include "base/str.h"

struct dv_err;
struct dv_plugin_handler;

/* The pause after the first failure; it doubles with each further one up to the cap. Both are the
 * reference's numbers. */
#define DV_PLUGIN_BACKOFF_FIRST_MS 500u
#define DV_PLUGIN_BACKOFF_MAX_MS 122000u
/* The reference looks once a second, so a socket that is replaced more often is not followed
 * faster. */
#define DV_PLUGIN_PERIOD_MS 1000u
/* How long a socket that went away is listed. */
#define DV_PLUGIN_GONE_LISTED_MS 60000u

struct dv_plugin_socket {
    dv_str path;

    uint64_t desired; /* the latest sighting; 0: it is not there */
    uint64_t desired_wall_ns;
    uint64_t gone_ms; /* when it was last seen to go away */
    /* Desired again, because what is registered is not allowed any more. */
    bool is_disallowed;

    uint64_t actual;                         /* the sighting that is registered; 0: none */
    const struct dv_plugin_handler *handler; /* the handler that it is registered with */

    uint64_t running; /* the sighting that an operation works for; 0: none runs */
    uint64_t last_start_ms;
    uint64_t not_before_ms; /* a replaced socket waits until the period has passed */

    /* The back-off belongs to the path, not to the sighting: a plugin that comes back waits for the
     * rest of it. */
    uint64_t backoff_ms; /* 0: the last operation did not fail */
    uint64_t retry_ms;
};

/* All sockets that are known. */
struct dv_plugin_world {
    struct dv_map sockets; /* by path */
    uint64_t last_sighting;
};

void dv_plugin_world_init(struct dv_plugin_world *world);
void dv_plugin_world_fini(struct dv_plugin_world *world); /* the sockets belong to their owner */
struct dv_plugin_socket *dv_plugin_world_get(const struct dv_plugin_world *world, dv_str path);

/* Notes that the socket is there, new or again, with a sighting of its own, and keeps it in the
 * world. DV_INVALID_ARGUMENT: its path is empty. */
DV_CHECKED bool dv_plugin_desire(struct dv_plugin_world *world, struct dv_plugin_socket *socket,
                                 uint64_t wall_ns, struct dv_err *err);
/* Gives a socket that is there a new sighting: what is registered is not allowed any more, and has
 * to be registered anew, which is refused. */
void dv_plugin_desire_again(struct dv_plugin_world *world, struct dv_plugin_socket *socket);
void dv_plugin_undesire(struct dv_plugin_socket *socket, uint64_t now_ms);
/* Notes that the sighting is registered; `handler` is kept. DV_INVALID_ARGUMENT: the path is
 * empty. */
DV_CHECKED bool dv_plugin_add_actual(struct dv_plugin_socket *socket, uint64_t sighting,
                                     const struct dv_plugin_handler *handler, struct dv_err *err);
void dv_plugin_remove_actual(struct dv_plugin_socket *socket);
bool dv_plugin_is_actual(const struct dv_plugin_socket *socket, uint64_t sighting);
/* Takes the socket out of the world. */
void dv_plugin_forget(struct dv_plugin_world *world, struct dv_plugin_socket *socket);

void dv_plugin_begin(struct dv_plugin_socket *socket, uint64_t now_ms);
void dv_plugin_succeed(struct dv_plugin_socket *socket);
/* Notes a failure. `spread` is a random number: pauses are up to a tenth longer, so that many
 * plugins do not retry at the same time. */
void dv_plugin_fail(struct dv_plugin_socket *socket, uint64_t now_ms, uint64_t spread);
/* Notes an end that is neither success nor failure. */
void dv_plugin_give_up(struct dv_plugin_socket *socket);

enum dv_plugin_action {
    DV_PLUGIN_DO_NOTHING,    /* all is as it should be, or is being made so */
    DV_PLUGIN_DO_CANCEL,     /* the running operation works for a socket that is gone */
    DV_PLUGIN_DO_DEREGISTER, /* deregister the old plugin, then ask again */
    DV_PLUGIN_DO_REGISTER,
    DV_PLUGIN_DO_WAIT, /* ask again at at_ms */
    DV_PLUGIN_DO_FORGET,
};

struct dv_plugin_decision {
    enum dv_plugin_action action;
    uint64_t at_ms; /* DV_PLUGIN_DO_WAIT */
};

/* Decides what to do next for the socket. It has one operation at a time, and the old plugin is
 * deregistered before the new one is registered. */
struct dv_plugin_decision dv_plugin_decide(const struct dv_plugin_socket *socket, uint64_t now_ms);

#endif
