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

/* Who started the operation. None of the functions is called from within start or cancel. */
struct dv_plugin_operation_owner {
    /* The operation has gone on to its next step, so its view may have changed. */
    void (*stepped)(struct dv_plugin_operation_owner *owner);
    /* The plugin has told its info, and that keeps all limits; borrowed. */
    void (*learned)(struct dv_plugin_operation_owner *owner, const struct dv_plugin_info *info);
    /* The handler is about to be asked. From now on the plugin counts as registered, so that its
     * going away is not missed. */
    void (*added)(struct dv_plugin_operation_owner *owner, const struct dv_plugin_handler *handler);
    /* The plugin does not count as registered after all; the handler knows that. */
    void (*removed)(struct dv_plugin_operation_owner *owner);
    /* The operation has ended and is freed. err is NULL on success. DV_CANCELLED is neither success
     * nor failure: the plugin may have been added and not removed. */
    void (*done)(struct dv_plugin_operation_owner *owner, const struct dv_err *err);
};

/* Keeps `rules` and `owner`. */
struct dv_plugin_operation *dv_plugin_operation_start(struct dv_loop *loop, dv_str path,
                                                      const struct dv_plugin_rules *rules,
                                                      struct dv_plugin_operation_owner *owner);
/* Cancels the operation. `done` still runs, with DV_CANCELLED unless it was about to end anyway. */
void dv_plugin_operation_cancel(struct dv_plugin_operation *operation);
/* Others wait, and this operation has had its time: if it waits for the connection or for the
 * handler, it fails soon. False: it is at a step that has a short limit of its own, and nothing
 * happens. */
bool dv_plugin_operation_give_way(struct dv_plugin_operation *operation);
/* Whether the plugin's info was found good and the registration has begun. */
bool dv_plugin_operation_is_registering(const struct dv_plugin_operation *operation);

#endif
