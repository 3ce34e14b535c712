/* fuzz_quantity.c - up to three quantities, one a line: each is printed and read again as the same
 * number, their order is total, and what is added can be taken off again. */
#include "number/number.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define N_TEXTS 3u
/* Text of a sum: all digits that there may be, and a suffix. */
#define PRINT_BYTES_MAX (DV_QUANTITY_DIGITS_MAX + 100u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_equal(const struct dv_quantity *a, const struct dv_quantity *b)
{
    return dv_quantity_cmp(a, b) == 0 && dv_quantity_cmp(b, a) == 0;
}

static void check_print(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_quantity again;
    struct dv_err err;

    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_quantity_print(quantity, &text);
    assert(dv_buf_check(&text, "quantity", &err));
    assert(dv_quantity_parse(dv_buf_str(&text), arena, &again, &err));
    assert(is_equal(quantity, &again));
}

/* A sum may be larger than what is read; with a binary suffix it would then be capped. */
static void check_print_sum(const struct dv_quantity *sum, struct dv_arena *arena)
{
    struct dv_quantity end = {.value = dv_quantity_sign(sum), .scale = DV_QUANTITY_DIGITS_MAX};

    if (sum->format != DV_QUANTITY_BINARY_SI && dv_quantity_cmp(sum, &end) == -end.value)
        check_print(sum, arena);
}

/* The whole number is not nearer to zero than the quantity, and less than one further away. */
static void check_whole(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    int sign = dv_quantity_sign(quantity);
    struct dv_quantity one = dv_quantity_from_i64(sign, DV_QUANTITY_DECIMAL_SI);
    struct dv_quantity whole;
    struct dv_quantity below;
    int64_t value;
    int64_t exact;

    if (!dv_quantity_to_i64_ceil(quantity, &value)) {
        assert(sign != 0 && !dv_quantity_is_integer(quantity));
        return;
    }
    whole = dv_quantity_from_i64(value, DV_QUANTITY_DECIMAL_SI);
    below = dv_quantity_sub(&whole, &one, arena);
    assert(dv_quantity_sign(&whole) == sign);
    assert(dv_quantity_cmp(quantity, &whole) * sign <= 0);
    assert(sign == 0 || dv_quantity_cmp(quantity, &below) == sign);
    if (dv_quantity_to_i64(quantity, &exact))
        assert(exact == value && is_equal(quantity, &whole));
}

static void check_one(dv_str text, const struct dv_quantity *quantity, struct dv_arena *arena)
{
    struct dv_quantity copy = dv_quantity_copy(quantity, arena);
    double number = dv_quantity_to_double(quantity);
    struct dv_err err;

    assert(is_equal(quantity, &copy));
    assert(dv_quantity_parse_json(text, arena, &copy, &err) && is_equal(quantity, &copy));
    assert(number != number || (number > 0) - (number < 0) == dv_quantity_sign(quantity));
    check_print(quantity, arena);
    check_whole(quantity, arena);
}

static void check_two(const struct dv_quantity *a, const struct dv_quantity *b,
                      struct dv_arena *arena)
{
    struct dv_quantity sum = dv_quantity_add(a, b, arena);
    struct dv_quantity turned = dv_quantity_add(b, a, arena);
    struct dv_quantity rest = dv_quantity_sub(&sum, b, arena);
    struct dv_quantity diff = dv_quantity_sub(a, b, arena);
    struct dv_quantity back = dv_quantity_add(&diff, b, arena);

    assert(dv_quantity_cmp(a, b) == -dv_quantity_cmp(b, a));
    assert(dv_quantity_cmp(a, b) == dv_quantity_sign(&diff));
    assert(is_equal(&sum, &turned) && is_equal(&rest, a) && is_equal(&back, a));
    assert(sum.format == (dv_quantity_sign(a) == 0 ? b->format : a->format));
    check_whole(&sum, arena);
    check_whole(&diff, arena);
    check_print_sum(&sum, arena);
    check_print_sum(&diff, arena);
}

static void check_three(const struct dv_quantity *a, const struct dv_quantity *b,
                        const struct dv_quantity *c)
{
    if (dv_quantity_cmp(a, b) <= 0 && dv_quantity_cmp(b, c) <= 0)
        assert(dv_quantity_cmp(a, c) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_quantity read[N_TEXTS];
    dv_str rest = {(const char *)data, size};
    size_t n = 0;
    struct dv_err err;
    dv_str text;

    while (size > 0 && n < N_TEXTS && dv_str_split(&rest, '\n', &text)) {
        if (!dv_quantity_parse(text, arena, &read[n], &err))
            continue;
        check_one(text, &read[n], arena);
        n++;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            check_two(&read[i], &read[k], arena);
            for (size_t m = 0; m < n; m++)
                check_three(&read[i], &read[k], &read[m]);
        }
    return 0;
}
