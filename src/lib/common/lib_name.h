/* lib_name.h - the names that a plugin is given: its resource, and the files of its sockets. */
#ifndef DV_LIB_NAME_H
#define DV_LIB_NAME_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* Checks the name of a resource as the node agent does. DV_INVALID_ARGUMENT. */
DV_CHECKED bool dv_lib_resource_check(dv_str name, struct dv_err *err);

/* The paths of the plugin's sockets, NUL-terminated. `name` is of the first, empty: made from the
 * resource.
 * DV_INVALID_ARGUMENT: no plain file name, one that the agent uses itself, or too long a path. */
DV_CHECKED bool dv_lib_socket_path(dv_str dir, dv_str name, dv_str resource, struct dv_arena *arena,
                                   dv_str *path, struct dv_err *err);
DV_CHECKED bool dv_lib_registry_path(dv_str dir, dv_str name, dv_str resource,
                                     struct dv_arena *arena, dv_str *path, struct dv_err *err);

/* Checks a DRA driver's name. DV_INVALID_ARGUMENT: it is none. */
DV_CHECKED bool dv_lib_driver_check(dv_str name, struct dv_err *err);
/* Checks a node's name. DV_INVALID_ARGUMENT: it is none. */
DV_CHECKED bool dv_lib_node_check(dv_str name, struct dv_err *err);
/* Makes the path of a socket in a directory, NUL-terminated. DV_INVALID_ARGUMENT: no plain file
 * name, or too long a path. */
DV_CHECKED bool dv_lib_path_join(dv_str dir, dv_str name, struct dv_arena *arena, dv_str *path,
                                 struct dv_err *err);

/* Makes the path of kubelet.sock. DV_INVALID_ARGUMENT: too long a path. */
DV_CHECKED bool dv_lib_agent_path(dv_str dir, struct dv_arena *arena, dv_str *path,
                                  struct dv_err *err);

/* The text behind the last '/'. */
dv_str dv_lib_file_name(dv_str path);

#endif
