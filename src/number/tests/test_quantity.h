/* test_quantity.h - what the tests of quantities share. */
#ifndef DV_RESOURCE_TEST_QUANTITY_H
#define DV_RESOURCE_TEST_QUANTITY_H

#include "support/dvtest.h"

#include "number/number.h"

static inline struct dv_quantity parsed(const char *text, struct dv_arena *arena)
{
    struct dv_quantity quantity = {0};
    struct dv_err err;

    if (!dv_quantity_parse(dv_str_from_c(text), arena, &quantity, &err))
        fail_msg("%s", err.msg);
    return quantity;
}

#endif
