/* plugin_endpoint.h - whether an endpoint lies where endpoints may lie, as the file system has it.
 *
 * This looks at files, so that work jobs do it; on the loop only for a name in the directory of
 * device plugins, which is our own. It says where the endpoint leads now: good
 * against mistakes and against links made before; who can write to the directory can still change
 * it after the look. */
#ifndef DV_PLUGIN_ENDPOINT_H
#define DV_PLUGIN_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* The endpoint, all symlinks followed, is below one of `roots`. It need not exist, and neither need
 * the last directories on the way. Its text has been checked. DV_PERMISSION_DENIED: it is
 * elsewhere, or a link in it leads nowhere. */
DV_CHECKED bool dv_plugin_endpoint_check(dv_str endpoint, const dv_str *roots, size_t n_roots,
                                         struct dv_err *err);

#endif
