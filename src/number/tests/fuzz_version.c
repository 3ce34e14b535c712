/* fuzz_version.c - up to three versions, one a line: each is printed and read again as the same
 * version, what is strict is tolerated, and their order is total. */
#include "number/number.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define N_TEXTS 3u
/* Beyond the text that was read: the numbers that a short version leaves out. */
#define MORE_BYTES_MAX 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const struct dv_version *a, const struct dv_version *b)
{
    return dv_version_cmp(a, b) == 0 && dv_version_cmp(b, a) == 0 && dv_str_eq(a->pre, b->pre) &&
           dv_str_eq(a->build, b->build);
}

static void check_one(dv_str text, const struct dv_version *tolerant)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf printed;
    struct dv_version strict;
    struct dv_version again;
    struct dv_err err;

    dv_buf_init(&printed, text.n + MORE_BYTES_MAX);
    dv_version_print(tolerant, &printed);
    assert(dv_buf_check(&printed, "version", &err));
    assert(dv_version_is_well_formed(dv_buf_str(&printed)));
    assert(dv_version_parse(dv_buf_str(&printed), &again, &err) && is_same(tolerant, &again));
    if (dv_version_parse(text, &strict, &err))
        assert(is_same(tolerant, &strict) && dv_str_eq(dv_buf_str(&printed), text));
}

static void check_three(const struct dv_version *a, const struct dv_version *b,
                        const struct dv_version *c)
{
    assert(dv_version_cmp(a, b) == -dv_version_cmp(b, a));
    if (dv_version_cmp(a, b) <= 0 && dv_version_cmp(b, c) <= 0)
        assert(dv_version_cmp(a, c) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dv_version read[N_TEXTS];
    dv_str rest = {(const char *)data, size};
    size_t n = 0;
    struct dv_err err;
    dv_str text;

    while (size > 0 && n < N_TEXTS && dv_str_split(&rest, '\n', &text)) {
        if (!dv_version_parse_tolerant(text, &read[n], &err)) {
            assert(!dv_version_parse(text, &read[n], &err));
            continue;
        }
        check_one(text, &read[n]);
        n++;
    }
    for (size_t i = 0; i < n * n * n; i++)
        check_three(&read[i / n / n], &read[i / n % n], &read[i % n]);
    return 0;
}
