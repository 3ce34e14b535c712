/* fuzz_session.h - one session, driven by the bytes of a fuzzer: what its peer sends, where that is
 * cut, and what its own side does in callbacks and in between.
 *
 *     1 byte    bit 0: the rest is in records, not raw bytes; the other bits choose limits
 *     1 byte    how long the script is
 *     script    what our side does
 *     rest      what the peer sends
 *
 * A record is one frame, made well-formed: kind, stream, length n, n bytes; fuzz_frames.c. */
#ifndef DV_HTTP2_FUZZ_SESSION_H
#define DV_HTTP2_FUZZ_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Longer inputs only take longer. */
#define FUZZ_BYTES_MAX 65536u

/* Runs the input twice, cut differently, and asserts all that must hold. */
void fuzz_session(bool is_server, const uint8_t *data, size_t size);

/* The bytes of the records; a server's peer begins with the preface and its settings. */
void fuzz_frames(bool is_server, dv_str records, struct dv_buf *bytes);
/* Asserts that what a session has sent is HTTP/2 and, of a server, gRPC. */
void fuzz_check_output(bool is_server, dv_str bytes);

#endif
