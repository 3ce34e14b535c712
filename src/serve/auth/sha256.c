/* sha256.c - SHA-256, straight from FIPS 180-4. */
#include "serve/auth/sha256.h"

#include <string.h>

#include "base/arena.h"

#define BLOCK_BYTES 64u
#define N_ROUNDS 64u
/* The length of the message in bits ends the last block. */
#define LENGTH_BYTES 8u

static const uint32_t round_constants[N_ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static void expand(const uint8_t block[BLOCK_BYTES], uint32_t w[N_ROUNDS])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < N_ROUNDS; i++) {
        uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t state[8], const uint8_t block[BLOCK_BYTES])
{
    uint32_t w[N_ROUNDS];
    uint32_t v[8];

    expand(block, w);
    memcpy(v, state, sizeof(v));
    for (size_t i = 0; i < N_ROUNDS; i++) {
        uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[i] + w[i];
        uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += v[i];
}

/* The rest of the text, a bit, zeros, and the length: one block or two. */
static void finish(uint32_t state[8], dv_str rest, uint64_t n_bytes)
{
    uint8_t tail[2 * BLOCK_BYTES] = {0};
    size_t n_blocks = rest.n + 1 + LENGTH_BYTES > BLOCK_BYTES ? 2 : 1;
    uint64_t n_bits = n_bytes * 8;

    if (rest.n)
        memcpy(tail, rest.p, rest.n);
    tail[rest.n] = 0x80;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        tail[n_blocks * BLOCK_BYTES - 1 - i] = (uint8_t)(n_bits >> (8 * i));
    for (size_t i = 0; i < n_blocks; i++)
        compress(state, tail + i * BLOCK_BYTES);
}

void dv_sha256(dv_str text, uint8_t digest[DV_SHA256_BYTES])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    size_t at = 0;

    for (; at + BLOCK_BYTES <= text.n; at += BLOCK_BYTES) {
        uint8_t block[BLOCK_BYTES];

        memcpy(block, text.p + at, BLOCK_BYTES);
        compress(state, block);
    }
    finish(state, dv_str_slice(text, at, text.n), text.n);
    for (size_t i = 0; i < DV_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

dv_str dv_sha256_hex(dv_str text, struct dv_arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[DV_SHA256_BYTES];
    char *hex = dv_arena_alloc(arena, 2 * (size_t)DV_SHA256_BYTES, 1);

    dv_sha256(text, digest);
    for (size_t i = 0; i < DV_SHA256_BYTES; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    return (dv_str){hex, 2 * (size_t)DV_SHA256_BYTES};
}
