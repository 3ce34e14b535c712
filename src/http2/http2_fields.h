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

/* Room for eight digits, a unit and the NUL. */
#define DV_H2_TIMEOUT_BYTES 10u
/* Prints "250m": rounded up, in the smallest unit whose eight digits hold it, as the reference
 * does; a timeout never becomes 0. Returns the length. */
size_t dv_h2_timeout_print(uint64_t timeout_ns, char text[DV_H2_TIMEOUT_BYTES]);
/* Parses at most eight digits and one of H M S m u n. */
DV_CHECKED bool dv_h2_timeout_parse(dv_str text, uint64_t *timeout_ns);

/* Encodes every byte outside 0x20..0x7e, and '%', as %XX. */
void dv_h2_percent_encode(dv_str text, struct dv_buf *out);
/* Decodes %XX. Broken escapes and raw bytes stay as they are; so does %00, because messages are C
 * strings. */
void dv_h2_percent_decode(dv_str text, struct dv_buf *out);

/* Whether it is "application/grpc", alone or followed by '+' or ';'. */
bool dv_h2_is_grpc_content_type(dv_str value);

/* Returns the code for an answer without grpc-status. */
enum dv_code dv_h2_code_from_http(uint32_t http_status);
/* Returns the code for a stream that the peer reset. */
enum dv_code dv_h2_code_from_reset(uint32_t error_code);
/* Parses a decimal number, which may be above 16; DV_UNKNOWN for anything else. */
enum dv_code dv_h2_code_parse(dv_str text);

#endif
