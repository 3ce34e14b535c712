/* fuzz_yaml.c - what is read as YAML, printed as YAML or JSON and read again, is the same document;
 * and a JSON text is a YAML text of the same meaning, but for what yaml_read.c lists. */
#include "json/json.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "json/tree.h"

#define DEPTH_MAX 40u
#define NODES_MAX 5000u
#define DOCUMENTS_MAX 20
#define PRINT_BYTES_MAX (64u * 1024u * 1024u)
#define KEY_BYTES_MAX 1000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dv_json_opts opts = {.depth_max = DEPTH_MAX, .nodes_max = NODES_MAX};

static void check_round_trip(const struct dv_json *doc, const struct dv_json_style *style)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    struct dv_json *read;
    struct dv_err err;

    dv_buf_init(&text, PRINT_BYTES_MAX);
    dv_yaml_print(doc, style, &text);
    read = dv_yaml_parse(dv_buf_str(&text), &opts, arena, &err);
    assert(read && dv_json_eq(doc, read));
    dv_buf_clear(&text);
    dv_json_print(doc, NULL, &text);
    read = dv_json_parse(dv_buf_str(&text), &opts, arena, &err);
    assert(read && dv_json_eq(doc, read));
}

/* A character that YAML does not allow, or that it takes for a line break. */
static bool has_odd_character(dv_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        unsigned char next = i + 1 < text.n ? (unsigned char)text.p[i + 1] : 0;

        if (c == 0x7f || (c == 0xc2 && next < 0xa0))
            return true;
        if (c == 0xef && (memcmp(text.p + i, "\xef\xbb\xbf", 3) == 0 ||
                          memcmp(text.p + i, "\xef\xbf\xbe", 3) == 0 ||
                          memcmp(text.p + i, "\xef\xbf\xbf", 3) == 0))
            return true;
    }
    return false;
}

/* Of one node and its key. */
static bool is_exception(const struct dv_json *node)
{
    struct dv_err err;
    dv_str text;

    if (dv_json_key(node).n > KEY_BYTES_MAX || has_odd_character(dv_json_key(node)))
        return true;
    if (dv_json_is(node, DV_JSON_NUMBER))
        return !isfinite(dv_json_text_to_double(dv_json_number_text(node)));
    return dv_json_is(node, DV_JSON_STRING) && dv_json_as_str(node, &text, &err) &&
           has_odd_character(text);
}

static bool has_exception(const struct dv_json *root)
{
    const struct dv_json *node = root;

    for (;;) {
        if (is_exception(node))
            return true;
        if (dv_json_first(node)) {
            node = dv_json_first(node);
            continue;
        }
        while (node != root && !dv_json_next(node))
            node = dv_json_parent(node);
        if (node == root)
            return false;
        node = dv_json_next(node);
    }
}

static void check_json(dv_str text, struct dv_arena *arena)
{
    /* Escapes U+2028 and U+2029, and has no blanks for libyaml to stumble over. */
    const struct dv_json_style style = {.escape_html = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf printed;
    struct dv_err err;
    struct dv_json *doc = dv_json_parse(text, &opts, arena, &err);
    struct dv_json *read;

    dv_buf_init(&printed, PRINT_BYTES_MAX);
    if (!doc)
        return;
    check_round_trip(doc, NULL);
    if (has_exception(doc))
        return;
    dv_json_print(doc, &style, &printed);
    read = dv_yaml_parse(dv_buf_str(&printed), &opts, arena, &err);
    assert(read && dv_json_eq(doc, read));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct dv_json_style sorted = {.sort_keys = true};
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    struct dv_err err;
    DV_CLEANUP(dv_yaml_stream_freep)
    struct dv_yaml_stream *stream = dv_yaml_stream_new(text, &opts, &err);

    assert(stream);
    for (int i = 0; i < DOCUMENTS_MAX; i++) {
        struct dv_json *doc;

        if (!dv_yaml_stream_next(stream, arena, &doc, &err) || !doc)
            break;
        check_round_trip(doc, NULL);
        check_round_trip(doc, &sorted);
    }
    check_json(text, arena);
    return 0;
}
