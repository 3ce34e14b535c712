/* signing_key.h - keys of signed tokens: RSA (RS256) or ECDSA on P-256 (ES256), as RFC 7518 has
 * them.
 *
 * A key is immutable: any thread may use it. */
#ifndef DV_REST_SIGNING_KEY_H
#define DV_REST_SIGNING_KEY_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_signing_key;

/* Makes a new private key on P-256, as PEM in the arena. */
DV_CHECKED bool dv_signing_key_make(struct dv_arena *arena, dv_str *pem, struct dv_err *err);

/* Reads a private key, or a public one, which can only verify. DV_INVALID_ARGUMENT: it is neither,
 * of another algorithm, or too short. */
struct dv_signing_key *dv_signing_key_new(dv_str pem, struct dv_err *err);
void dv_signing_key_free(struct dv_signing_key *key); /* NULL is fine */

/* Whether the key is a private one. */
bool dv_signing_key_can_sign(const struct dv_signing_key *key);
/* Returns "RS256" or "ES256". */
dv_str dv_signing_key_algorithm(const struct dv_signing_key *key);
/* Returns the key's name, which is a hash of its public part. */
dv_str dv_signing_key_id(const struct dv_signing_key *key);
/* Prints the public part as a JSON Web Key (RFC 7517). */
void dv_signing_key_print(const struct dv_signing_key *key, struct dv_buf *buf);

/* Signs `text` with a private key; the signature is bytes in the arena. */
DV_CHECKED bool dv_signing_key_sign(const struct dv_signing_key *key, dv_str text,
                                    struct dv_arena *arena, dv_str *signature, struct dv_err *err);
/* Whether the signature is the key's, of that text. */
bool dv_signing_key_verify(const struct dv_signing_key *key, dv_str text, dv_str signature);

#endif
