/* url.h - URLs: an absolute URI, or an absolute path. */
#ifndef DV_CEL_URL_H
#define DV_CEL_URL_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;

struct dv_cel_url {
    dv_str scheme; /* in lower case */
    dv_str opaque; /* of scheme:opaque */
    dv_str user;
    dv_str host; /* unescaped, with its port */
    dv_str path; /* as it was written */
    dv_str query;
    dv_str fragment; /* unescaped */
    bool has_host;
    bool has_mark; /* "?" without anything behind it: it counts when two are compared */
};

/* Whether the text could stand in the line of an HTTP request. "//host/p" is a path there. */
DV_CHECKED bool dv_cel_url_check(dv_str text, struct dv_arena *arena);
/* Parses a text that passes the check; now "//host/p" has a host, and "#f" is a fragment. */
DV_CHECKED bool dv_cel_url_parse(dv_str text, struct dv_arena *arena, struct dv_cel_url *url);
dv_str dv_cel_url_hostname(const struct dv_cel_url *url);
dv_str dv_cel_url_port(const struct dv_cel_url *url);
/* The path with escapes where it needs them. */
dv_str dv_cel_url_escaped_path(const struct dv_cel_url *url, struct dv_arena *arena);
/* Unescapes %41 as A, and with `plus` + as a space. False: the text has a wrong escape. */
DV_CHECKED bool dv_cel_url_unescape(dv_str text, bool plus, struct dv_arena *arena, dv_str *out);

bool dv_cel_url_eq(const struct dv_cel_url *a, const struct dv_cel_url *b);

#endif
