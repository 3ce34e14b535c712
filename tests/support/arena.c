#include "support/arena.h"

#include "base/arena.h"

int arena_start(void **state)
{
    *state = dv_arena_new();
    return 0;
}

int arena_end(void **state)
{
    dv_arena_free(*state);
    return 0;
}
