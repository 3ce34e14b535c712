#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"

/* Many vectors of large elements have one for ever. */
#define LARGE_BYTES 64u

void *dv_vec_grow(void *elements, size_t n, size_t *size, size_t element_bytes,
                  struct dv_arena *arena)
{
    if (n == *size) {
        size_t wanted = n ? n * 2 : element_bytes < LARGE_BYTES ? 4 : 1;
        size_t bytes;
        void *grown;

        if (!dv_size_mul(wanted, element_bytes, &bytes))
            abort();
        if (arena) {
            grown = dv_arena_alloc(arena, bytes, _Alignof(max_align_t));
            if (n > 0)
                memcpy(grown, elements, n * element_bytes);
        } else {
            grown = dv_realloc(elements, bytes);
        }
        elements = grown;
        *size = wanted;
    }
    memset((char *)elements + n * element_bytes, 0, element_bytes);
    return elements;
}
