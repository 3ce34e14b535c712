/* sha256.h - SHA-256 (FIPS 180-4): what tokens are known by at rest, and tags of documents. */
#ifndef DV_SERVE_SHA256_H
#define DV_SERVE_SHA256_H

#include <stdint.h>

#include "base/str.h"

struct dv_arena;

#define DV_SHA256_BYTES 32u

void dv_sha256(dv_str text, uint8_t digest[DV_SHA256_BYTES]);
/* As 64 lower-case digits, in the arena. */
dv_str dv_sha256_hex(dv_str text, struct dv_arena *arena);

#endif
