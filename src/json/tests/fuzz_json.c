/* fuzz_json.c - what is read as JSON, printed in any style and read again, is the same document;
 * and no document is deeper or larger than it may be. */
#include "json/json.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define DEPTH_MAX 40u
#define NODES_MAX 5000u
#define PRINT_BYTES_MAX (64u * 1024u * 1024u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* clang-format off */
static const struct dv_json_style styles[] = {
    {.indent = 0},
    {.indent = 4},
    {.indent = 2, .escape_html = true},
    {.sort_keys = true, .escape_html = true},
};
/* clang-format on */

/* Every node is found by its key, is where its parent says, and is not too deep. */
static void check_tree(const struct dv_json *root)
{
    const struct dv_json *node = root;
    size_t n_nodes = 1;
    size_t depth = 0;

    for (;;) {
        assert(depth + (dv_json_kind(node) >= DV_JSON_ARRAY) <= DEPTH_MAX);
        if (depth > 0 && dv_json_is(dv_json_parent(node), DV_JSON_OBJECT))
            assert(dv_json_get(dv_json_parent(node), dv_json_key(node)) == node);
        if (dv_json_first(node)) {
            node = dv_json_first(node);
            depth++;
        } else {
            while (node != root && !dv_json_next(node)) {
                node = dv_json_parent(node);
                depth--;
            }
            if (node == root)
                break;
            node = dv_json_next(node);
        }
        n_nodes++;
    }
    assert(n_nodes <= NODES_MAX);
}

static void check_style(const struct dv_json *doc, const struct dv_json_opts *opts,
                        const struct dv_json_style *style)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    DV_CLEANUP(dv_buf_fini) struct dv_buf again;
    struct dv_err err;
    struct dv_json *read;

    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_buf_init(&again, PRINT_BYTES_MAX);
    dv_json_print(doc, style, &text);
    read = dv_json_parse(dv_buf_str(&text), opts, arena, &err);
    assert(read && dv_json_eq(doc, read) && dv_json_eq(read, doc));
    dv_json_print(read, style, &again);
    assert(dv_str_eq(dv_buf_str(&text), dv_buf_str(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_json_opts opts = {.depth_max = DEPTH_MAX, .nodes_max = NODES_MAX};
    dv_str text = {(const char *)data, size};
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, &opts, arena, &err);
    struct dv_json *same;

    opts.replace_bad_utf8 = true;
    same = dv_json_parse(text, &opts, arena, &err);
    assert(!doc || (same && dv_json_eq(doc, same)));
    if (!same)
        return 0;
    check_tree(same);
    assert(dv_json_eq(same, dv_json_copy(same, arena)));
    opts.replace_bad_utf8 = false;
    opts.refuse_duplicates = true;
    for (size_t i = 0; i < DV_COUNT(styles); i++)
        check_style(same, &opts, &styles[i]);
    return 0;
}
