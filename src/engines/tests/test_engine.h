/* test_engine.h - commands as lines, their words parted by blanks. */
#ifndef DV_ENGINE_TEST_ENGINE_H
#define DV_ENGINE_TEST_ENGINE_H

#include "support/dvtest.h" /* IWYU pragma: export */

#include <stddef.h>

#include "base/arena.h"      /* IWYU pragma: export */
#include "base/buf.h"        /* IWYU pragma: export */
#include "base/defs.h"       /* IWYU pragma: export */
#include "base/err.h"        /* IWYU pragma: export */
#include "base/str.h"        /* IWYU pragma: export */
#include "engines/engines.h" /* IWYU pragma: export */

/* Splits a line at its blanks. */
static inline size_t split_words(const char *line, struct dv_arena *arena, dv_str **words)
{
    dv_str rest = dv_str_from_c(line);
    dv_str word;
    size_t n = 0;

    *words = DV_NEW_ARRAY(arena, dv_str, rest.n + 1);
    while (rest.n > 0 && dv_str_split(&rest, ' ', &word))
        (*words)[n++] = word;
    return n;
}

static inline const char *join_words(const dv_str *words, size_t n_words, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, 65536);
    dv_engine_print_words(words, n_words, &buf);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}

#endif
