/* plugin_check.h - whether a plugin may be registered and, if not, why, in the reference's words.
 * Pure.
 *
 * Plugins are told, and people search their logs for these texts. They can be longer than an error
 * holds: a handler may quote all versions that a plugin offers. */
#ifndef DV_PLUGIN_CHECK_H
#define DV_PLUGIN_CHECK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"

struct dv_guard;
struct dv_plugin_handler;
struct dv_plugin_info;
struct dv_plugin_rules;

struct dv_plugin_failure {
    struct dv_err err;  /* DV_OK: there is no failure */
    struct dv_buf text; /* the whole of err.msg, always UTF-8 */
};

void dv_plugin_failure_init(struct dv_plugin_failure *failure);
void dv_plugin_failure_fini(struct dv_plugin_failure *failure);
/* Sets the failure to "RegisterPlugin error -- " and the text, unless there is one already. The
 * code is never DV_CANCELLED, which means that we gave up. Returns false. */
bool dv_plugin_failure_set(struct dv_plugin_failure *failure, enum dv_code code, const char *fmt,
                           ...) DV_PRINTF(3, 4);

/* Whether the policy allows the process that listens on the socket to be what it says it is. */
bool dv_plugin_is_allowed(struct dv_guard *guard, const struct dv_plugin_info *info,
                          struct dv_err *err);
/* Whether what the plugin says of itself keeps the limits that hold for every type (info.h). */
DV_CHECKED bool dv_plugin_check_limits(const struct dv_plugin_info *info,
                                       struct dv_plugin_failure *failure);
/* Finds the handler for the type that a plugin says it is, and lets it validate the plugin, which
 * keeps the limits. Checks everything but where its endpoint leads, which needs the file system. */
DV_CHECKED bool dv_plugin_judge(const struct dv_plugin_rules *rules,
                                const struct dv_plugin_info *info,
                                const struct dv_plugin_handler **handler,
                                struct dv_plugin_failure *failure);

#endif
