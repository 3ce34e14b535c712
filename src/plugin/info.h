/* info.h - what a plugin says about itself: decoded, and held to limits. Pure. */
#ifndef DV_PLUGIN_INFO_H
#define DV_PLUGIN_INFO_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;
struct dv_plugin_info;

/* A PluginInfo that keeps the limits below has 17 KB at most; the rest is for fields to come. */
#define DV_PLUGIN_INFO_BYTES_MAX 32768u
/* As long as a label: the known types have 12 characters. */
#define DV_PLUGIN_TYPE_BYTES_MAX 63u
/* "<DNS name>/<label>", the longest resource name; a driver's is shorter. */
#define DV_PLUGIN_NAME_BYTES_MAX 317u
/* Reference plugins list up to three, of up to 26 characters. */
#define DV_PLUGIN_VERSIONS_MAX 64u
#define DV_PLUGIN_VERSION_BYTES_MAX 253u

/* Decodes the message into a struct in `arena`. An empty endpoint becomes `socket`.
 * DV_INVALID_ARGUMENT: the bytes are no PluginInfo, or a string in it has a NUL byte. */
DV_CHECKED bool dv_plugin_info_decode(dv_str message, dv_str socket, struct dv_arena *arena,
                                      struct dv_plugin_info *info, struct dv_err *err);
void dv_plugin_info_copy(const struct dv_plugin_info *from, struct dv_arena *arena,
                         struct dv_plugin_info *to);

/* Checks what holds for plugins of every type. An empty name is left to the handler, because the
 * reference takes drivers without one. */
DV_CHECKED bool dv_plugin_info_check(const struct dv_plugin_info *info, struct dv_err *err);
/* Checks the text of an endpoint: it must be absolute, without "." and "..". */
DV_CHECKED bool dv_plugin_endpoint_check_text(dv_str endpoint, struct dv_err *err);
/* Whether `path` is below `dir`; both absolute and without links, as realpath gives them. */
bool dv_plugin_is_inside(dv_str dir, dv_str path);

#endif
