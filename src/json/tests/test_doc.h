/* test_doc.h - documents in tests: each test has an arena of its own, and texts go in and out in a
 * word. */
#ifndef DV_JSON_TEST_DOC_H
#define DV_JSON_TEST_DOC_H

#include "support/dvtest.h"

#include "base/buf.h"
#include "support/docs.h"
#include "json/json.h"

#define PRINT_BYTES_MAX 65536u

static inline struct dv_json *parse(const char *text)
{
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc, &err);
    return doc;
}

static inline dv_str print_style(const struct dv_json *node, const struct dv_json_style *style)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(node, style, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

static inline dv_str print(const struct dv_json *node)
{
    return print_style(node, NULL);
}

static inline dv_str print_yaml(const struct dv_json *node, const struct dv_json_style *style)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_yaml_print(node, style, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

#endif
