/* continue_token.h - continue tokens: where the next page of a list begins.
 *
 * Opaque to clients: base64url of {"v":"meta.k8s.io/v1","rv":VERSION,"start":"KEY\u0000"}, as the
 * reference's are, with the last key that was shown. */
#ifndef DV_CLUSTER_CONTINUE_TOKEN_H
#define DV_CLUSTER_CONTINUE_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* Stands in place of a version for whatever is newest. */
#define DV_TOKEN_NEWEST (-1)

struct dv_continue {
    int64_t version;
    dv_str after; /* the key; what comes must be behind it */
};

dv_str dv_continue_print(const struct dv_continue *token, struct dv_arena *arena);
/* DV_INVALID_ARGUMENT with the reference's message. */
DV_CHECKED bool dv_continue_parse(dv_str text, struct dv_arena *arena, struct dv_continue *token,
                                  struct dv_err *err);

#endif
