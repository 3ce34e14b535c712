/* yaml_read.c - YAML text into trees, from the events of libyaml.
 *
 * What comes out is what Kubernetes makes of the same text (yaml_scalar.c has the rules of
 * scalars): an alias is a copy of what its anchor names; `<<` puts the members of one or several
 * mappings in its place, and what comes later in the text wins, also over keys that stand before
 * the merge; comments are gone.
 *
 * JSON is YAML but for a few things, most of them libyaml's. Refused: a key of more than 1,024
 * characters or on another line than its colon, a tab before the first value, escaped surrogate
 * pairs, the characters U+007F to U+009F, U+FEFF, U+FFFE and U+FFFF unless escaped. Read otherwise:
 * U+0085, U+2028 and U+2029, which are line breaks here, and numbers that no double holds. */
#include "json/tree.h"

#include <math.h>
#include <stdlib.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "json/yaml_scalar.h"

/* How many nodes aliases may add: go-yaml's own allowance for a document that is not huge. Without
 * it, ten lines are enough for a billion. */
#define ALIAS_NODES_MAX 400000u

struct dv_yaml_stream {
    yaml_parser_t parser;
    dv_str text;
    struct dv_json_opts limits;
    size_t nodes_left;
    size_t alias_nodes_left;
    bool is_done; /* at the end, or failed */

    /* The document that is being read. */
    struct dv_arena *arena;
    struct dv_map anchors; /* nodes by name */
    struct dv_json *root;
    struct dv_json *open; /* the innermost container that is not complete */
    uint32_t depth;
    dv_str key; /* in an object: of the value that comes next */
    yaml_mark_t key_mark;
    bool has_key;
    bool is_merge; /* the key was << */
};

/* -- Errors --------------------------------------------------------------------------------- */

static uint32_t to_u32(size_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static bool fail(yaml_mark_t mark, enum dv_code code, const char *msg, struct dv_err *err)
{
    return dv_json_fail_at(to_u32(mark.line + 1), to_u32(mark.column + 1), code, err, "%s", msg);
}

/* libyaml's reader counts bytes. */
static yaml_mark_t mark_of_offset(dv_str text, size_t offset)
{
    yaml_mark_t mark = {0};

    for (size_t i = 0; i < offset && i < text.n; i++) {
        if (text.p[i] == '\n') {
            mark.line++;
            mark.column = 0;
        } else if (((unsigned char)text.p[i] & 0xc0) != 0x80) {
            mark.column++;
        }
    }
    return mark;
}

static bool fail_parser(const struct dv_yaml_stream *stream, struct dv_err *err)
{
    const yaml_parser_t *parser = &stream->parser;
    yaml_mark_t mark = parser->problem_mark;

    if (parser->error == YAML_MEMORY_ERROR)
        abort();
    if (parser->error == YAML_READER_ERROR)
        return fail(mark_of_offset(stream->text, parser->problem_offset), DV_INVALID_ARGUMENT,
                    parser->problem, err);
    if (!parser->context)
        return fail(mark, DV_INVALID_ARGUMENT, parser->problem, err);
    return dv_json_fail_at(to_u32(mark.line + 1), to_u32(mark.column + 1), DV_INVALID_ARGUMENT, err,
                           "%s %s that begins on line %zu", parser->problem, parser->context,
                           parser->context_mark.line + 1);
}

/* -- Nodes ---------------------------------------------------------------------------------- */

static void set_mark(struct dv_json *node, yaml_mark_t mark)
{
    node->line = to_u32(mark.line + 1);
    node->column = dv_json_clamp_column(mark.column + 1) & DV_JSON_COLUMN_MAX;
}

static struct dv_json *new_node(struct dv_yaml_stream *stream, enum dv_json_kind kind,
                                yaml_mark_t mark, struct dv_err *err)
{
    struct dv_json *node;

    if (stream->nodes_left == 0) {
        (void)fail(mark, DV_RESOURCE_EXHAUSTED, "more values than are allowed", err);
        return NULL;
    }
    stream->nodes_left--;
    node = dv_json_new(kind, stream->arena);
    set_mark(node, mark);
    return node;
}

static bool is_key_next(const struct dv_yaml_stream *stream)
{
    return dv_json_is(stream->open, DV_JSON_OBJECT) && !stream->has_key;
}

/* Puts a value where it belongs: in the open container, or as the root. */
static void place(struct dv_yaml_stream *stream, struct dv_json *node)
{
    if (!stream->open) {
        stream->root = node;
        return;
    }
    if (stream->has_key) {
        node->key = stream->key.p;
        node->key_n = (uint32_t)stream->key.n;
        if (!stream->limits.places_values)
            dv_json_place_at_key(node, to_u32(stream->key_mark.line + 1),
                                 dv_json_clamp_column(stream->key_mark.column + 1));
        node->is_merge = stream->is_merge;
        stream->has_key = false;
    }
    dv_json_link(stream->open, node);
}

static void set_anchor(struct dv_yaml_stream *stream, const yaml_char_t *name, struct dv_json *node)
{
    if (name)
        (void)dv_map_set(&stream->anchors,
                         dv_str_copy(dv_str_from_c((const char *)name), stream->arena), node);
}

/* -- Scalars and keys ----------------------------------------------------------------------- */

static bool resolve(struct dv_yaml_stream *stream, const yaml_event_t *event,
                    struct dv_yaml_scalar *scalar, struct dv_err *err)
{
    struct dv_yaml_source source = {
        .text = {(const char *)event->data.scalar.value, event->data.scalar.length},
        .tag = dv_str_from_c((const char *)event->data.scalar.tag),
        .is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
    };
    yaml_mark_t mark = event->start_mark;

    if (dv_yaml_resolve_tagged(&source, stream->arena, scalar, err))
        return true;
    return dv_wrap(err, "line %zu, column %zu", mark.line + 1, mark.column + 1);
}

static struct dv_json *new_scalar(struct dv_yaml_stream *stream, const yaml_event_t *event,
                                  struct dv_err *err)
{
    struct dv_yaml_scalar scalar;
    struct dv_json *node;

    if (!resolve(stream, event, &scalar, err))
        return NULL;
    if (scalar.kind == DV_JSON_NUMBER && scalar.is_float && !isfinite(scalar.value)) {
        (void)fail(event->start_mark, DV_INVALID_ARGUMENT,
                   "a number that is infinite or none has no place in JSON", err);
        return NULL;
    }
    node = new_node(stream, scalar.kind, event->start_mark, err);
    if (!node)
        return NULL;
    dv_yaml_to_node(&scalar, stream->arena, node);
    set_anchor(stream, event->data.scalar.anchor, node);
    return node;
}

static bool is_merge_key(const yaml_event_t *event)
{
    dv_str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    dv_str tag = dv_str_from_c((const char *)event->data.scalar.tag);

    if (!dv_str_eq(text, DV_STR("<<")))
        return false;
    return dv_str_eq(tag, DV_STR("tag:yaml.org,2002:merge")) ||
           (tag.n == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
}

static bool read_scalar_key(struct dv_yaml_stream *stream, const yaml_event_t *event,
                            struct dv_err *err)
{
    struct dv_yaml_scalar scalar;

    if (!resolve(stream, event, &scalar, err))
        return false;
    if (event->data.scalar.anchor && !new_scalar(stream, event, err)) /* an alias may want it */
        return false;
    if (!dv_yaml_to_key(&scalar, stream->arena, &stream->key))
        return fail(event->start_mark, DV_INVALID_ARGUMENT, "null as a key", err);
    stream->has_key = true;
    stream->key_mark = event->start_mark;
    stream->is_merge = is_merge_key(event);
    return true;
}

static bool read_scalar(struct dv_yaml_stream *stream, const yaml_event_t *event,
                        struct dv_err *err)
{
    struct dv_json *node;

    if (is_key_next(stream))
        return read_scalar_key(stream, event, err);
    node = new_scalar(stream, event, err);
    if (!node)
        return false;
    place(stream, node);
    return true;
}

/* -- Aliases -------------------------------------------------------------------------------- */

static bool is_open(const struct dv_yaml_stream *stream, const struct dv_json *node)
{
    const struct dv_json *open = stream->open;

    while (open && open != node)
        open = open->next; /* an open container is its parent's last child */
    return open != NULL;
}

static struct dv_json *copy_within_limits(struct dv_yaml_stream *stream, const struct dv_json *node,
                                          yaml_mark_t mark, struct dv_err *err)
{
    size_t nodes = dv_size_min(stream->nodes_left, stream->alias_nodes_left);
    struct dv_json_budget budget = {nodes, stream->limits.depth_max - stream->depth};
    struct dv_json *copy = dv_json_copy_within(node, &budget, stream->arena);

    if (!copy) {
        (void)fail(mark, DV_RESOURCE_EXHAUSTED,
                   "aliases that expand to more or deeper values than are allowed", err);
        return NULL;
    }
    stream->nodes_left -= nodes - budget.nodes;
    stream->alias_nodes_left -= nodes - budget.nodes;
    return copy;
}

static bool read_alias_key(struct dv_yaml_stream *stream, const struct dv_json *node,
                           yaml_mark_t mark, struct dv_err *err)
{
    struct dv_yaml_scalar scalar = dv_yaml_from_node(node);

    if (dv_json_is_container(node))
        return fail(mark, DV_INVALID_ARGUMENT, "a key that is no scalar", err);
    if (!dv_yaml_to_key(&scalar, stream->arena, &stream->key))
        return fail(mark, DV_INVALID_ARGUMENT, "null as a key", err);
    stream->has_key = true;
    stream->key_mark = mark;
    stream->is_merge = false;
    return true;
}

static bool read_alias(struct dv_yaml_stream *stream, const yaml_event_t *event, struct dv_err *err)
{
    dv_str name = dv_str_from_c((const char *)event->data.alias.anchor);
    struct dv_json *node = dv_map_get(&stream->anchors, name);
    yaml_mark_t mark = event->start_mark;

    if (!node || is_open(stream, node))
        return dv_json_fail_at(to_u32(mark.line + 1), to_u32(mark.column + 1), DV_INVALID_ARGUMENT,
                               err, node ? "anchor \"%.*s\" contains itself" : "no anchor \"%.*s\"",
                               DV_FMT(name));
    if (is_key_next(stream))
        return read_alias_key(stream, node, mark, err);
    node = copy_within_limits(stream, node, mark, err);
    if (!node)
        return false;
    set_mark(node, mark); /* what is wrong with it here is no fault of the anchor's */
    place(stream, node);
    return true;
}

/* -- Containers ----------------------------------------------------------------------------- */

static bool open_container(struct dv_yaml_stream *stream, enum dv_json_kind kind,
                           const yaml_char_t *anchor, yaml_mark_t mark, struct dv_err *err)
{
    struct dv_json *node;

    if (is_key_next(stream))
        return fail(mark, DV_INVALID_ARGUMENT, "a key that is no scalar", err);
    if (stream->depth == stream->limits.depth_max)
        return dv_json_fail_at(
            to_u32(mark.line + 1), to_u32(mark.column + 1), DV_RESOURCE_EXHAUSTED, err,
            "more than %u sequences and mappings inside each other", stream->limits.depth_max);
    node = new_node(stream, kind, mark, err);
    if (!node)
        return false;
    set_anchor(stream, anchor, node);
    place(stream, node);
    stream->open = node;
    stream->depth++;
    return true;
}

/* Copies of the members of `from`, at the end of `object`. */
static bool merge_one(struct dv_yaml_stream *stream, struct dv_json *object,
                      const struct dv_json *from, struct dv_err *err)
{
    yaml_mark_t mark = {.line = from->line - 1, .column = from->column - 1};

    if (!dv_json_is(from, DV_JSON_OBJECT))
        return fail(mark, DV_INVALID_ARGUMENT, "<< needs a mapping or a sequence of mappings", err);
    for (const struct dv_json *child = dv_json_first(from); child; child = dv_json_next(child)) {
        struct dv_json *copy = copy_within_limits(stream, child, mark, err);

        if (!copy)
            return false;
        copy->key = child->key;
        copy->key_n = child->key_n;
        copy->is_merged = 1;
        dv_json_link(object, copy);
    }
    return true;
}

/* Merges in reverse: of a sequence the first has precedence, so it is merged last. */
static bool merge(struct dv_yaml_stream *stream, struct dv_json *object, struct dv_json *value,
                  struct dv_err *err)
{
    DV_VEC(const struct dv_json *) sources = {0};
    bool is_good = true;

    if (!dv_json_is(value, DV_JSON_ARRAY))
        return merge_one(stream, object, value, err);
    for (const struct dv_json *child = value->first; child; child = dv_json_next(child))
        *dv_vec_add(&sources) = child;
    for (size_t i = sources.n; is_good && i > 0; i--)
        is_good = merge_one(stream, object, sources.v[i - 1], err);
    dv_vec_fini(&sources);
    return is_good;
}

/* Links the members again, with those of each << in its place. */
static bool expand_merges(struct dv_yaml_stream *stream, struct dv_json *object, struct dv_err *err)
{
    struct dv_json *members = dv_json_new(DV_JSON_OBJECT, stream->arena);
    struct dv_json *child;

    while ((child = dv_json_shift(object)) != NULL)
        dv_json_link(members, child);
    while ((child = dv_json_shift(members)) != NULL) {
        if (!child->is_merge)
            dv_json_link(object, child);
        else if (!merge(stream, object, child, err))
            return false;
    }
    return true;
}

static bool has_merge(const struct dv_json *object)
{
    for (const struct dv_json *child = object->first; child; child = dv_json_next(child))
        if (child->is_merge)
            return true;
    return false;
}

static bool close_container(struct dv_yaml_stream *stream, struct dv_err *err)
{
    struct dv_json *node = stream->open;

    stream->depth--;
    stream->open = node->next;
    if (!dv_json_is(node, DV_JSON_OBJECT))
        return true;
    if (has_merge(node) && !expand_merges(stream, node, err))
        return false;
    return dv_json_seal(node, stream->limits.refuse_duplicates, stream->arena, err);
}

/* -- Documents ------------------------------------------------------------------------------ */

static bool read_event(struct dv_yaml_stream *stream, const yaml_event_t *event, struct dv_err *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(stream, event, err);
    case YAML_ALIAS_EVENT:
        return read_alias(stream, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(stream, DV_JSON_ARRAY, event->data.sequence_start.anchor,
                              event->start_mark, err);
    case YAML_MAPPING_START_EVENT:
        return open_container(stream, DV_JSON_OBJECT, event->data.mapping_start.anchor,
                              event->start_mark, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_container(stream, err);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return true;
}

/* Reads up to the end of the next document, or of the stream. */
static bool read_document(struct dv_yaml_stream *stream, struct dv_err *err)
{
    yaml_event_type_t type;

    do {
        yaml_event_t event;
        bool is_good;

        if (!yaml_parser_parse(&stream->parser, &event))
            return fail_parser(stream, err);
        type = event.type;
        is_good = read_event(stream, &event, err);
        yaml_event_delete(&event);
        if (!is_good)
            return false;
    } while (type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT);
    stream->is_done = type == YAML_STREAM_END_EVENT;
    return true;
}

struct dv_yaml_stream *dv_yaml_stream_new(dv_str text, const struct dv_json_opts *opts,
                                          struct dv_err *err)
{
    struct dv_json_opts limits = dv_json_fill_opts(opts, DV_YAML_DEPTH_MAX);
    struct dv_yaml_stream *stream;

    if (!dv_json_check_size(text, &limits, err))
        return NULL;
    stream = DV_ALLOC(struct dv_yaml_stream);
    stream->text = text;
    stream->limits = limits;
    stream->nodes_left = limits.nodes_max;
    stream->alias_nodes_left = ALIAS_NODES_MAX;
    dv_map_init(&stream->anchors);
    if (!yaml_parser_initialize(&stream->parser))
        abort(); /* out of memory */
    yaml_parser_set_encoding(&stream->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&stream->parser, (const unsigned char *)(text.p ? text.p : ""),
                                 text.n);
    return stream;
}

void dv_yaml_stream_free(struct dv_yaml_stream *stream)
{
    if (!stream)
        return;
    yaml_parser_delete(&stream->parser);
    dv_map_fini(&stream->anchors);
    free(stream);
}

void dv_yaml_stream_freep(struct dv_yaml_stream **stream)
{
    dv_yaml_stream_free(*stream);
}

bool dv_yaml_stream_next(struct dv_yaml_stream *stream, struct dv_arena *arena,
                         struct dv_json **doc, struct dv_err *err)
{
    bool is_good = true;

    stream->arena = arena;
    stream->root = stream->open = NULL;
    stream->depth = 0;
    stream->has_key = false;
    dv_map_clear(&stream->anchors);
    if (!stream->is_done) {
        is_good = read_document(stream, err);
        stream->is_done = stream->is_done || !is_good;
    }
    if (is_good)
        *doc = stream->root;
    return is_good;
}

struct dv_json *dv_yaml_parse(dv_str text, const struct dv_json_opts *opts, struct dv_arena *arena,
                              struct dv_err *err)
{
    DV_CLEANUP(dv_yaml_stream_freep)
    struct dv_yaml_stream *stream = dv_yaml_stream_new(text, opts, err);
    struct dv_json *doc;
    struct dv_json *second;

    if (!stream || !dv_yaml_stream_next(stream, arena, &doc, err))
        return NULL;
    if (!doc)
        return dv_json_new_null(arena);
    if (!dv_yaml_stream_next(stream, arena, &second, err))
        return NULL;
    if (second) {
        (void)dv_json_fail(second, err, "a second document");
        return NULL;
    }
    return doc;
}
