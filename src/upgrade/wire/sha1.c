#include "upgrade/wire/sha1.h"

#include <string.h>

#define BLOCK_BYTES 64u
#define LENGTH_BYTES 8u

static uint32_t rotate(uint32_t value, unsigned n)
{
    return value << n | value >> (32 - n);
}

/* FIPS 180-4, 6.1.2. */
static void add_block(uint32_t hash[5], const uint8_t block[BLOCK_BYTES])
{
    uint32_t w[80];
    uint32_t a = hash[0];
    uint32_t b = hash[1];
    uint32_t c = hash[2];
    uint32_t d = hash[3];
    uint32_t e = hash[4];

    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 |
               (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
    for (size_t i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        uint32_t f;
        uint32_t k;
        uint32_t next;

        if (i < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (i < 40) {
            f = b ^ c ^ d;
            k = 0x6ed9eba1;
        } else if (i < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        } else {
            f = b ^ c ^ d;
            k = 0xca62c1d6;
        }
        next = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    hash[0] += a;
    hash[1] += b;
    hash[2] += c;
    hash[3] += d;
    hash[4] += e;
}

void dv_sha1(dv_str text, uint8_t digest[DV_SHA1_BYTES])
{
    uint32_t hash[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t last[2 * BLOCK_BYTES] = {0};
    uint64_t n_bits = (uint64_t)text.n * 8;
    size_t n_last;

    for (; text.n >= BLOCK_BYTES; text = dv_str_slice(text, BLOCK_BYTES, text.n))
        add_block(hash, (const uint8_t *)text.p);
    if (text.n > 0)
        memcpy(last, text.p, text.n);
    last[text.n] = 0x80;
    n_last = text.n + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        last[n_last - 1 - i] = (uint8_t)(n_bits >> (8 * i));
    for (size_t i = 0; i < n_last; i += BLOCK_BYTES)
        add_block(hash, last + i);
    for (size_t i = 0; i < DV_SHA1_BYTES; i++)
        digest[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}
