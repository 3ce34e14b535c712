/* failure.h - why a plugin is not registered, in the reference's words. Pure.
 *
 * Plugins are told, and people search their logs for these texts. They can be longer than an error
 * holds: a handler may quote all versions that a plugin offers. */
#ifndef DV_PLUGIN_FAILURE_H
#define DV_PLUGIN_FAILURE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"

struct dv_guard;
struct dv_plugin_handler;
struct dv_plugin_info;
struct dv_plugin_rules;

struct dv_plugin_failure {
    struct dv_err err;  /* DV_OK: there is none */
    struct dv_buf text; /* the whole of err.msg, always UTF-8 */
};

void dv_plugin_failure_init(struct dv_plugin_failure *failure);
void dv_plugin_failure_fini(struct dv_plugin_failure *failure);
/* "RegisterPlugin error -- " and the text. The first failure counts. Never has code DV_CANCELLED,
 * which means that we gave up. Returns false. */
bool dv_plugin_failure_set(struct dv_plugin_failure *failure, enum dv_code code, const char *fmt,
                           ...) DV_PRINTF(3, 4);

/* Whether the policy lets who listens on the socket be what it says it is. */
bool dv_plugin_info_may(struct dv_guard *guard, const struct dv_plugin_info *info,
                        struct dv_err *err);
/* Finds the handler for what a plugin says it is, and has it validated; looks at everything but
 * where its endpoint leads. */
DV_CHECKED bool dv_plugin_judge(const struct dv_plugin_rules *rules,
                                const struct dv_plugin_info *info,
                                const struct dv_plugin_handler **handler,
                                struct dv_plugin_failure *failure);

#endif
