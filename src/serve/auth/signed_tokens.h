/* signed_tokens.h - tokens of service accounts: signed by a key of ours, and stored nowhere. What
 * was verified is remembered under its hash, so that a request costs a look-up. */
#ifndef DV_SERVE_SIGNED_TOKENS_H
#define DV_SERVE_SIGNED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_jwt_claims;
struct dv_signed_tokens;
struct dv_token;

/* Reads the keys, PEM texts, of which the first signs; without any a key is made that lives as long
 * as this. DV_INVALID_ARGUMENT: one cannot be used. */
struct dv_signed_tokens *dv_signed_tokens_new(const dv_str *pems, size_t n_pems,
                                              struct dv_err *err);
void dv_signed_tokens_free(struct dv_signed_tokens *tokens); /* NULL is fine */

/* Makes a token that says what the claims say. */
DV_CHECKED bool dv_signed_tokens_sign(const struct dv_signed_tokens *tokens,
                                      const struct dv_jwt_claims *claims, struct dv_arena *arena,
                                      dv_str *text, struct dv_err *err);
/* Verifies a token and says whose it is; whether that account and what the token is bound to still
 * exist is not looked at. `hash` is the SHA-256 of the text. The result is borrowed until the next
 * call. DV_NOT_FOUND: it is no token of this issuer. DV_UNAUTHENTICATED: it is one, and not
 * good. */
const struct dv_token *dv_signed_tokens_find(struct dv_signed_tokens *tokens, dv_str text,
                                             dv_str hash, int64_t now_s, struct dv_err *err);
/* Returns a token that was found before and is still good; NULL: there is none. */
const struct dv_token *dv_signed_tokens_get(const struct dv_signed_tokens *tokens, dv_str hash,
                                            int64_t now_s);

/* Prints the public keys as a JSON Web Key Set, and the names of their algorithms as a JSON
 * list. */
void dv_signed_tokens_print_keys(const struct dv_signed_tokens *tokens, struct dv_buf *buf);
void dv_signed_tokens_print_algorithms(const struct dv_signed_tokens *tokens, struct dv_buf *buf);

#endif
