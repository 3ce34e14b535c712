/* test_resource_patch.h - documents in the tests of patches: written as YAML, compared as values.
 */
#ifndef DV_RESOURCE_TEST_RESOURCE_PATCH_H
#define DV_RESOURCE_TEST_RESOURCE_PATCH_H

#include "support/dvtest.h"

#include "base/buf.h"
#include "support/docs.h"
#include "json/json.h"

#define PRINT_BYTES_MAX 65536u

static inline dv_str print(const struct dv_json *node)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, NULL, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static inline void assert_doc(const struct dv_json *got, const char *wanted)
{
    if (!dv_json_eq(got, parse_yaml(wanted)))
        fail_msg("got %.*s, want %.*s", DV_FMT(print(got)), DV_FMT(print(parse_yaml(wanted))));
}

#endif
