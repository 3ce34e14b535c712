/* http2_fields.h - the texts in gRPC's header fields, and what HTTP says in gRPC's terms. Pure. */
#ifndef DV_HTTP2_FIELDS_H
#define DV_HTTP2_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

struct dv_buf;

/* Eight digits, a unit, the end. */
#define DV_H2_TIMEOUT_BYTES 10u
/* "250m": rounded up, in the smallest unit whose eight digits hold it, as the reference does; a
 * timeout never becomes 0. Returns the length. */
size_t dv_h2_timeout_print(uint64_t timeout_ns, char text[DV_H2_TIMEOUT_BYTES]);
/* At most eight digits and one of H M S m u n. */
DV_CHECKED bool dv_h2_timeout_parse(dv_str text, uint64_t *timeout_ns);

/* Every byte outside 0x20..0x7e, and '%', becomes %XX. */
void dv_h2_percent_encode(dv_str text, struct dv_buf *out);
/* Broken escapes and raw bytes stay as they are; so does %00, because messages are C strings. */
void dv_h2_percent_decode(dv_str text, struct dv_buf *out);

/* "application/grpc", alone or followed by '+' or ';'. */
bool dv_h2_is_grpc_content_type(dv_str value);

/* For an answer without grpc-status. */
enum dv_code dv_h2_code_from_http(uint32_t http_status);
/* For a stream that the peer reset. */
enum dv_code dv_h2_code_from_reset(uint32_t error_code);
/* A decimal number, also one above 16; DV_UNKNOWN for anything else. */
enum dv_code dv_h2_code_parse(dv_str text);

#endif
