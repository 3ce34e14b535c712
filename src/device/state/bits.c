#include "device/state/bits.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"

#define WORD_BITS 64u

static size_t words_for(size_t n_bits)
{
    return (n_bits + WORD_BITS - 1) / WORD_BITS;
}

void dv_device_bits_init(struct dv_device_bits *bits, size_t n)
{
    size_t n_words = 0;
    size_t at = 0;

    *bits = (struct dv_device_bits){0};
    for (size_t k = 0; k < DV_DEVICE_BITS_LEVELS; k++) {
        bits->n_bits[k] = n;
        n = words_for(n);
        n_words += n;
    }
    assert(n <= 1); /* otherwise DV_DEVICE_BITS_LEVELS is too small */
    bits->words = dv_alloc(n_words * sizeof(bits->words[0]));
    for (size_t k = 0; k < DV_DEVICE_BITS_LEVELS; k++) {
        bits->levels[k] = bits->words + at;
        at += words_for(bits->n_bits[k]);
    }
}

void dv_device_bits_fini(struct dv_device_bits *bits)
{
    free(bits->words);
    *bits = (struct dv_device_bits){0};
}

void dv_device_bits_set(struct dv_device_bits *bits, size_t i, bool is_in)
{
    assert(i < bits->n_bits[0]);
    for (size_t k = 0; k < DV_DEVICE_BITS_LEVELS; k++) {
        uint64_t *word = &bits->levels[k][i / WORD_BITS];
        uint64_t bit = UINT64_C(1) << (i % WORD_BITS);
        bool was_empty = *word == 0;

        *word = is_in ? *word | bit : *word & ~bit;
        if (was_empty == (*word == 0))
            return; /* the level above had this bit already */
        i /= WORD_BITS;
        is_in = *word != 0;
    }
}

size_t dv_device_bits_next(const struct dv_device_bits *bits, size_t i)
{
    size_t k = 0;

    for (;; k++) { /* goes up to a level that has a member at or after i */
        uint64_t rest;

        if (k == DV_DEVICE_BITS_LEVELS || i >= bits->n_bits[k])
            return SIZE_MAX;
        rest = bits->levels[k][i / WORD_BITS] >> (i % WORD_BITS);
        if (rest != 0) {
            i += (size_t)__builtin_ctzll(rest);
            break;
        }
        i = i / WORD_BITS + 1;
    }
    while (k-- > 0) /* goes down again to the member */
        i = i * WORD_BITS + (size_t)__builtin_ctzll(bits->levels[k][i]);
    return i;
}
