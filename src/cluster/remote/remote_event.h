/* remote_event.h - what a list and a watch say, read from their bytes. Pure.
 *
 * Nothing is taken on trust: a page that is no list, an event of no known type, an object without
 * a name or a version are refused, so that a gateway's error page does not empty a view. */
#ifndef DV_CLUSTER_REMOTE_EVENT_H
#define DV_CLUSTER_REMOTE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"

struct dv_api_version;
struct dv_arena;
struct dv_err;
struct dv_json;
struct dv_kind;
struct dv_object;

/* A member's text; empty when it is absent or something else. */
dv_str dv_remote_text(const struct dv_json *object, const char *key);

/* An object that the server sent in answer to a request in `version`. The document must be one of
 * the kind's, in any of its versions; items of a list need not say what they are. The object is
 * new. */
struct dv_object *dv_remote_object(const struct dv_kind *kind, const struct dv_api_version *version,
                                   const struct dv_json *doc, struct dv_arena *arena,
                                   struct dv_err *err);

/* ---- lists ---- */

struct dv_remote_page {
    struct dv_object **objects; /* references, in the arena */
    size_t n_objects;
    uint64_t version;
    dv_str more; /* asks for the next page; empty: this was the last */
};

/* Keeps nothing of `text`. */
DV_CHECKED bool dv_remote_page_read(const struct dv_kind *kind,
                                    const struct dv_api_version *version, dv_str text,
                                    struct dv_arena *arena, struct dv_remote_page *page,
                                    struct dv_err *err);
void dv_remote_page_drop(struct dv_remote_page *page);

/* ---- watches ---- */

enum dv_remote_event_type {
    DV_REMOTE_ADDED,
    DV_REMOTE_MODIFIED,
    DV_REMOTE_DELETED,
    DV_REMOTE_BOOKMARK,
    DV_REMOTE_ERROR,
};

struct dv_remote_event {
    enum dv_remote_event_type type;
    uint64_t version;         /* not of errors */
    struct dv_object *object; /* a reference; NULL for bookmarks and errors */
    int64_t code;             /* of an error */
    dv_str message;           /* of an error; in the line or the arena */
};

DV_CHECKED bool dv_remote_event_read(const struct dv_kind *kind,
                                     const struct dv_api_version *version, dv_str line,
                                     struct dv_arena *arena, struct dv_remote_event *event,
                                     struct dv_err *err);

/* Bytes in parts, as lines. */
struct dv_remote_lines {
    struct dv_buf kept; /* the beginning of a line whose end has not come */
    bool is_taken;      /* it was whole, and is done with */
};

void dv_remote_lines_init(struct dv_remote_lines *lines, size_t line_bytes_max);
void dv_remote_lines_fini(struct dv_remote_lines *lines);
void dv_remote_lines_clear(struct dv_remote_lines *lines);
/* Takes the next line off *part, with what came of it before; it is borrowed until the next call.
 * False: there is none yet, all of the part is kept; or the line is too long, then
 * dv_remote_lines_check fails. */
bool dv_remote_lines_next(struct dv_remote_lines *lines, dv_str *part, dv_str *line);
DV_CHECKED bool dv_remote_lines_check(const struct dv_remote_lines *lines, struct dv_err *err);

#endif
