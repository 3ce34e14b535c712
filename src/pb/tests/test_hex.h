/* test_hex.h - bytes from their hex digits, for tables of cases; spaces are for the reader. */
#ifndef DV_PB_TEST_HEX_H
#define DV_PB_TEST_HEX_H

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"

static inline dv_str bytes_of_hex(const char *hex, struct dv_arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    char *bytes = dv_arena_alloc(arena, strlen(hex) / 2, 1);
    size_t n_digits = 0;

    for (; *hex; hex++) {
        const char *digit = strchr(digits, *hex);

        if (*hex == ' ')
            continue;
        assert(digit);
        bytes[n_digits / 2] = (char)(bytes[n_digits / 2] << 4 | (digit - digits));
        n_digits++;
    }
    assert(n_digits % 2 == 0);
    return (dv_str){bytes, n_digits / 2};
}

#endif
