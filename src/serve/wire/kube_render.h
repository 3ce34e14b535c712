/* kube_render.h - objects as the bytes of answers: JSON, YAML, protobuf; whole, as rows of a table,
 * or only their metadata. Pure. */
#ifndef DV_SERVE_KUBE_RENDER_H
#define DV_SERVE_KUBE_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "serve/wire/kube_accept.h"

struct dv_arena;
struct dv_buf;
struct dv_err;

/* How something is printed, of which kind, and at which time (for ages). */
struct dv_render {
    struct dv_rendering rendering;
    const struct dv_kind *kind;
    const struct dv_api_version *version;
    dv_str include_object; /* for tables: "", "Metadata", "Object", "None" */
    struct dv_time now;
};

/* Prints in JSON (also when YAML is wanted) or protobuf, without a newline. */
void dv_render_object(const struct dv_render *render, const struct dv_object *object,
                      struct dv_arena *arena, struct dv_buf *buf);
void dv_render_list(const struct dv_render *render, const struct dv_list_page *page,
                    struct dv_arena *arena, struct dv_buf *buf);
/* Print a list in parts: what comes first and does not depend on its objects, what comes before the
 * objects, each of them, and what follows. In protobuf the length of all objects together, as
 * dv_render_list_item prints them, comes before them; in JSON n_items_bytes is not used. */
void dv_render_list_head(const struct dv_render *render, struct dv_arena *arena,
                         struct dv_buf *buf);
void dv_render_list_begin(const struct dv_render *render, const struct dv_list_page *page,
                          size_t n_items_bytes, struct dv_arena *arena, struct dv_buf *buf);
void dv_render_list_item(const struct dv_render *render, const struct dv_object *object,
                         bool is_first, struct dv_arena *arena, struct dv_buf *buf);
void dv_render_list_end(const struct dv_render *render, struct dv_buf *buf);
void dv_render_status(enum dv_media media, const struct dv_api_status *status, struct dv_buf *buf);
/* Prints a message that is no object, such as a review. */
void dv_render_message(enum dv_media media, const struct dv_message *message, const void *value,
                       dv_str api_version, dv_str kind, struct dv_buf *buf);

/* ---- watches: a line each, or a frame ---- */

/* Prints an event. `has_columns`: the first event of a table has the columns. */
void dv_render_event(const struct dv_render *render, const char *type,
                     const struct dv_object *object, bool has_columns, struct dv_arena *arena,
                     struct dv_buf *buf);
/* Prints an event of an object that dv_render_object has printed. */
void dv_render_event_of(enum dv_media media, const char *type, dv_str object, struct dv_buf *buf);
/* Prints an object that has only the version; `is_initial_end`: all objects that existed at the
 * start have been sent. */
void dv_render_bookmark(const struct dv_render *render, uint64_t version, bool is_initial_end,
                        bool has_columns, struct dv_arena *arena, struct dv_buf *buf);
void dv_render_error_event(enum dv_media media, const struct dv_api_status *status,
                           struct dv_buf *buf);

/* Turns JSON text of ours into YAML, or indents it. */
DV_CHECKED bool dv_render_restyle(dv_str json, bool is_yaml, struct dv_buf *out,
                                  struct dv_err *err);

#endif
