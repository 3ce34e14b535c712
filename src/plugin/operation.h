/* operation.h - one attempt to register the plugin behind a socket: connect, GetInfo, validate,
 * register, NotifyRegistrationStatus, close.
 *
 * The texts of its errors are the reference's, since plugins are told most of them. */
#ifndef DV_PLUGIN_OPERATION_H
#define DV_PLUGIN_OPERATION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

struct dv_guard;
struct dv_loop;
struct dv_plugin_handler;
struct dv_plugin_info;
struct dv_plugin_operation;
struct dv_plugin_rules;

/* Whose operation it is. None is called from within start or cancel. */
struct dv_plugin_operation_owner {
    /* It has gone a step on: what is told of it may have changed. */
    void (*stepped)(struct dv_plugin_operation_owner *owner);
    /* The plugin has said who it is, within all limits; borrowed. */
    void (*learned)(struct dv_plugin_operation_owner *owner, const struct dv_plugin_info *info);
    /* The handler is about to be asked: from now on the plugin counts as registered, so that its
     * going away is not missed. */
    void (*added)(struct dv_plugin_operation_owner *owner, const struct dv_plugin_handler *handler);
    /* It does not count as registered after all; the handler knows. */
    void (*removed)(struct dv_plugin_operation_owner *owner);
    /* The end; the operation is gone. DV_CANCELLED: neither success nor failure; it may have been
     * added and not removed. err: NULL on success. */
    void (*done)(struct dv_plugin_operation_owner *owner, const struct dv_err *err);
};

/* Keeps `rules` and `owner`. */
struct dv_plugin_operation *dv_plugin_operation_start(struct dv_loop *loop, dv_str path,
                                                      const struct dv_plugin_rules *rules,
                                                      struct dv_plugin_operation_owner *owner);
/* `done` still runs, with DV_CANCELLED unless the end was near. */
void dv_plugin_operation_cancel(struct dv_plugin_operation *operation);
/* Others wait, and it has had its time: an attempt that waits for the connection or for the handler
 * fails soon. False: it is at a step that has a short limit of its own, and nothing happens. */
bool dv_plugin_operation_give_way(struct dv_plugin_operation *operation);
/* The plugin's info is good, and what follows has begun. */
bool dv_plugin_operation_is_registering(const struct dv_plugin_operation *operation);

#endif
