/* header_list.h - a header list while it is received, under limits. There is one at a time on a
 * connection: HTTP/2 does not interleave them. */
#ifndef DV_HTTP2_HEADER_LIST_H
#define DV_HTTP2_HEADER_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "http2/http2_server.h"

/* HTTP/2 counts this much for each field of a header list beside its texts. */
#define DV_H2_FIELD_OVERHEAD 32u

struct dv_h2_header_list {
    struct dv_buf text;
    struct {
        size_t name_at, name_n, value_at, value_n; /* in text, which may move while it grows */
    } * v;
    size_t n;
    size_t size;
    size_t bytes; /* as HTTP/2 counts: with 32 for each field */
    size_t bytes_max;
    size_t fields_max;
    bool is_over; /* a limit was passed: what came after is not here */
};

void dv_h2_headers_init(struct dv_h2_header_list *list, size_t bytes_max, size_t fields_max);
void dv_h2_headers_fini(struct dv_h2_header_list *list);
void dv_h2_headers_reset(struct dv_h2_header_list *list); /* keeps the memory */
void dv_h2_headers_add(struct dv_h2_header_list *list, dv_str name, dv_str value);
/* Returns field i, borrowed until the list changes. */
struct dv_h2_field dv_h2_headers_at(const struct dv_h2_header_list *list, size_t i);

#endif
