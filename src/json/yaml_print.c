/* yaml_print.c - trees as YAML in block style, through libyaml's emitter.
 *
 * go-yaml's emitter, which prints for kubectl, is a port of libyaml's: given the same style for
 * each scalar, the two agree on indentation, folding at 80 columns, indicators and escapes. We
 * choose the styles as kubectl does, and differ where its output would not read back: line
 * separators other than \n, and "<<" as a key, are put in double quotes. */
#include "json/tree.h"

#include <assert.h>
#include <stdlib.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/buf.h"
#include "json/yaml_scalar.h"

struct printer {
    yaml_emitter_t emitter;
    struct dv_buf *buf;
};

/* Called by libyaml; 0 stops it. */
static int write_out(void *data, unsigned char *bytes, size_t n)
{
    struct dv_buf *buf = data;

    dv_buf_add(buf, (dv_str){(const char *)bytes, n});
    return !buf->is_over;
}

/* Takes the event, which `is_made` says was made. False: the buffer is full. */
static bool emit(struct printer *p, yaml_event_t *event, int is_made)
{
    if (!is_made)
        abort(); /* out of memory: what we give it is UTF-8 */
    if (yaml_emitter_emit(&p->emitter, event))
        return true;
    if (p->emitter.error == YAML_MEMORY_ERROR)
        abort();
    assert(p->emitter.error == YAML_WRITER_ERROR);
    return false;
}

/* -- Scalars -------------------------------------------------------------------------------- */

/* U+0085, U+2028, U+2029, which YAML 1.1 takes for line breaks, and U+FEFF. */
static bool has_odd_break(dv_str text)
{
    static const dv_str odd[] = {
        DV_STR_INIT("\xc2\x85"),
        DV_STR_INIT("\xe2\x80\xa8"),
        DV_STR_INIT("\xe2\x80\xa9"),
        DV_STR_INIT("\xef\xbb\xbf"),
    };

    for (size_t i = 0; i < DV_COUNT(odd); i++) {
        if (dv_str_find(text, odd[i]) < text.n)
            return true;
    }
    return false;
}

static yaml_scalar_style_t style_of(dv_str text, bool is_key)
{
    if (has_odd_break(text) || (is_key && dv_str_eq(text, DV_STR("<<"))))
        return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    if (dv_str_find_char(text, '\n') < text.n)
        return YAML_LITERAL_SCALAR_STYLE;
    if (dv_yaml_resolve(text).kind != DV_JSON_STRING || dv_yaml_looks_like_date(text) ||
        dv_yaml_looks_like_base60(text))
        return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    return YAML_PLAIN_SCALAR_STYLE; /* libyaml quotes it where it cannot stand so */
}

static bool emit_scalar(struct printer *p, dv_str text, const char *tag, yaml_scalar_style_t style)
{
    bool is_implicit = tag == NULL;
    yaml_event_t event;

    return emit(p, &event,
                yaml_scalar_event_initialize(&event, NULL, (const yaml_char_t *)tag,
                                             (const yaml_char_t *)(text.p ? text.p : ""),
                                             (int)text.n, is_implicit, is_implicit, style));
}

/* Prints a number. One that a double cannot hold would read back as a string, so it gets a tag. */
static bool emit_number(struct printer *p, const struct dv_json *node)
{
    dv_str text = dv_json_number_text(node);
    bool is_huge = dv_yaml_resolve(text).kind != DV_JSON_NUMBER;

    return emit_scalar(p, text, is_huge ? YAML_FLOAT_TAG : NULL, YAML_PLAIN_SCALAR_STYLE);
}

/* -- Trees ---------------------------------------------------------------------------------- */

/* The key and value; of a container only its beginning. */
static bool emit_node(struct printer *p, const struct dv_json *node, bool is_member)
{
    dv_str text = {node->text, node->n};
    dv_str key = dv_json_key(node);
    yaml_event_t event;

    if (is_member && !emit_scalar(p, key, NULL, style_of(key, true)))
        return false;
    switch (dv_json_kind(node)) {
    case DV_JSON_NULL:
        return emit_scalar(p, DV_STR("null"), NULL, YAML_PLAIN_SCALAR_STYLE);
    case DV_JSON_BOOL:
        return emit_scalar(p, node->n ? DV_STR("true") : DV_STR("false"), NULL,
                           YAML_PLAIN_SCALAR_STYLE);
    case DV_JSON_NUMBER:
        return emit_number(p, node);
    case DV_JSON_STRING:
        return emit_scalar(p, text, NULL, style_of(text, false));
    case DV_JSON_ARRAY:
        return emit(
            p, &event,
            yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
    case DV_JSON_OBJECT:
        break;
    }
    return emit(
        p, &event,
        yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
}

static bool emit_end(struct printer *p, const struct dv_json *container)
{
    yaml_event_t event;

    if (dv_json_is(container, DV_JSON_ARRAY))
        return emit(p, &event, yaml_sequence_end_event_initialize(&event));
    return emit(p, &event, yaml_mapping_end_event_initialize(&event));
}

static bool emit_tree(struct printer *p, const struct dv_json *root)
{
    const struct dv_json *node = root;

    for (;;) {
        if (!emit_node(p, node, node != root && node->key))
            return false;
        if (dv_json_first(node)) {
            node = node->first;
            continue;
        }
        if (dv_json_is_container(node) && !emit_end(p, node))
            return false;
        while (node != root && node->is_last) {
            node = node->next;
            if (!emit_end(p, node))
                return false;
        }
        if (node == root)
            return true;
        node = node->next;
    }
}

static bool emit_document(struct printer *p, const struct dv_json *node)
{
    yaml_event_t event;

    if (!emit(p, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) ||
        !emit(p, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) ||
        !emit_tree(p, node) || !emit(p, &event, yaml_document_end_event_initialize(&event, 1)))
        return false;
    p->emitter.open_ended = 0; /* no "..." at the end, as kubectl */
    return emit(p, &event, yaml_stream_end_event_initialize(&event));
}

void dv_yaml_print(const struct dv_json *node, const struct dv_json_style *style,
                   struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = NULL;
    struct printer p = {.buf = buf};

    if (style && style->sort_keys) {
        struct dv_json_budget all = {SIZE_MAX, SIZE_MAX};
        struct dv_json *sorted;

        scratch = dv_arena_new();
        sorted = dv_json_copy_within(node, &all, scratch);
        dv_json_sort(sorted, DV_JSON_NATURAL);
        node = sorted;
    }
    if (!yaml_emitter_initialize(&p.emitter))
        abort(); /* out of memory */
    yaml_emitter_set_unicode(&p.emitter, 1);
    yaml_emitter_set_output(&p.emitter, write_out, buf);
    (void)emit_document(&p, node); /* the buffer remembers that it was too small */
    yaml_emitter_delete(&p.emitter);
}
