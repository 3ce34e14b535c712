/* jwt.h - JSON Web Tokens (RFC 7519) of service accounts, as text and as what they say. Pure: who
 * may sign, and what a token is good for, is decided elsewhere.
 *
 *     base64url({"alg", "kid"}) . base64url(claims) . base64url(signature) */
#ifndef DV_SERVE_JWT_H
#define DV_SERVE_JWT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;
struct dv_err;

/* A longer text is no token of ours: names, uids and audiences are shorter. */
#define DV_JWT_BYTES_MAX (32u * 1024u)

/* An object that a token names; an empty name: it names none. */
struct dv_jwt_object {
    dv_str name;
    dv_str uid;
};

struct dv_jwt_claims {
    dv_str issuer;
    dv_str subject;
    struct dv_strs audiences;
    int64_t expires_s; /* these are wall time; 0: it is not said */
    int64_t not_before_s;
    int64_t issued_s;
    dv_str id;
    /* What "kubernetes.io" says. */
    dv_str namespace;
    struct dv_jwt_object account;
    struct dv_jwt_object pod;
    struct dv_jwt_object secret;
    struct dv_jwt_object node;
    int64_t warn_after_s;
};

/* A token that was read, and is not verified. */
struct dv_jwt {
    dv_str algorithm;
    dv_str key_id;      /* may be empty */
    dv_str signed_text; /* what the signature is of */
    dv_str signature;   /* bytes */
    struct dv_jwt_claims claims;
};

/* Reads a token; its texts are borrowed from `text` or in the arena. DV_INVALID_ARGUMENT: it is no
 * token, or a claim is not what it should be. */
DV_CHECKED bool dv_jwt_read(dv_str text, struct dv_arena *arena, struct dv_jwt *jwt,
                            struct dv_err *err);
/* Prints what is to be signed: the first two parts of a token. */
void dv_jwt_print(dv_str algorithm, dv_str key_id, const struct dv_jwt_claims *claims,
                  struct dv_buf *buf);
/* Copies claims with their texts into the arena. */
struct dv_jwt_claims *dv_jwt_copy_claims(const struct dv_jwt_claims *claims,
                                         struct dv_arena *arena);

#endif
