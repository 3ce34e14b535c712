/* fields_print.c - sets of fields as text: FieldsV1, and paths for people. */
#include "resource/patch/field_set.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/json.h"

/* No object of the API is half as deep, so deeper documents are refused. */
#define DEPTH_MAX 100u
/* The longest text of ownership: far above the limit of an object. */
#define PRINT_BYTES_MAX (64u * 1024u * 1024u)
#define PATH_BYTES_MAX 65536u

static dv_str kept(struct dv_buf *buf, struct dv_arena *arena)
{
    dv_str text = dv_str_copy(dv_buf_str(buf), arena);

    dv_buf_fini(buf);
    return text;
}

/* Prints the same JSON with its keys sorted: the text that names an item has to be the same each
 * time. */
static bool canonical(dv_str text, struct dv_arena *arena, dv_str *sorted, struct dv_err *err)
{
    struct dv_json_opts opts = {.depth_max = DEPTH_MAX};
    struct dv_json_style style = {.sort_keys = true};
    const struct dv_json *doc = dv_json_parse(text, &opts, arena, err);
    struct dv_buf buf;

    if (!doc)
        return false;
    dv_buf_init(&buf, PRINT_BYTES_MAX);
    dv_json_print(doc, &style, &buf);
    *sorted = kept(&buf, arena);
    return true;
}

/* Parses the key of a step; NULL: it is none. */
static struct dv_fields *parse_step(dv_str key, struct dv_arena *arena, struct dv_fields *parent,
                                    struct dv_err *err)
{
    dv_str text = dv_str_slice(key, 2, key.n);

    if (key.n < 2 || key.p[1] != ':' || key.p[0] == '\0' || !strchr("fkvi", key.p[0])) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "fieldsV1: \"%.*s\" is no field", DV_FMT(key));
        return NULL;
    }
    if (key.p[0] != 'f' && !canonical(text, arena, &text, err)) {
        (void)dv_wrap(err, "fieldsV1: %.*s", DV_FMT(key));
        return NULL;
    }
    return dv_fields_add(parent, key.p[0], text, arena);
}

/* NOLINTNEXTLINE(misc-no-recursion): the document is no deeper than DEPTH_MAX */
static bool parse_node(const struct dv_json *doc, struct dv_arena *arena, struct dv_fields *node,
                       struct dv_err *err)
{
    if (!dv_json_is(doc, DV_JSON_OBJECT))
        return dv_fail(err, DV_INVALID_ARGUMENT, "fieldsV1: not an object");
    for (const struct dv_json *member = dv_json_first(doc); member; member = dv_json_next(member)) {
        struct dv_fields *child;

        if (dv_str_eq(dv_json_key(member), DV_STR("."))) {
            node->in = DV_FIELDS_MEMBER;
            continue;
        }
        child = parse_step(dv_json_key(member), arena, node, err);
        if (!child)
            return false;
        if (dv_json_n(member) == 0)
            child->in = DV_FIELDS_MEMBER;
        if (!parse_node(member, arena, child, err))
            return false;
    }
    dv_fields_sort(node);
    for (size_t i = 1; i < node->n; i++)
        if (dv_fields_cmp(&node->v[i - 1], &node->v[i]) == 0)
            return dv_fail(err, DV_INVALID_ARGUMENT, "fieldsV1: %.*s is there twice",
                           DV_FMT(node->v[i].text));
    return true;
}

bool dv_fields_parse(dv_str text, struct dv_arena *arena, struct dv_fields *fields,
                     struct dv_err *err)
{
    struct dv_json_opts opts = {.depth_max = DEPTH_MAX};
    const struct dv_json *doc = dv_json_parse(text, &opts, arena, err);
    struct dv_fields root = {0};

    if (!doc || !parse_node(doc, arena, &root, err))
        return false;
    *fields = root;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void print_node(const struct dv_fields *node, bool is_root, struct dv_buf *buf,
                       struct dv_arena *arena)
{
    bool is_first = true;

    dv_buf_add_char(buf, '{');
    if (node->in != DV_FIELDS_OUT && (node->n > 0 || is_root)) {
        dv_buf_add_c(buf, "\".\":{}");
        is_first = false;
    }
    for (size_t i = 0; i < node->n; i++) {
        const struct dv_fields *child = &node->v[i];

        if (!is_first)
            dv_buf_add_char(buf, ',');
        is_first = false;
        dv_buf_add_json(buf, dv_str_concat(
                                 (const dv_str[]){
                                     {(const char[]){child->kind, ':'}, 2},
                                     child->text
        },
                                 2, arena));
        dv_buf_add_char(buf, ':');
        print_node(child, false, buf, arena);
    }
    dv_buf_add_char(buf, '}');
}

dv_str dv_fields_print(const struct dv_fields *fields, struct dv_arena *arena)
{
    struct dv_buf buf;

    dv_buf_init(&buf, PRINT_BYTES_MAX);
    print_node(fields, true, &buf, arena);
    return kept(&buf, arena);
}

/* {"containerPort":80,"protocol":"TCP"} as [containerPort=80,protocol="TCP"]. */
static void print_keys(dv_str text, struct dv_buf *buf, struct dv_arena *arena)
{
    struct dv_err ignored;
    const struct dv_json *keys = dv_json_parse(text, NULL, arena, &ignored);
    char before = '[';

    for (const struct dv_json *key = dv_json_first(keys); key; key = dv_json_next(key)) {
        dv_buf_add_char(buf, before);
        dv_buf_add(buf, dv_json_key(key));
        dv_buf_add_char(buf, '=');
        dv_json_print(key, NULL, buf);
        before = ',';
    }
    dv_buf_add_char(buf, ']');
}

static void print_step(const struct dv_fields *node, struct dv_buf *buf, struct dv_arena *arena)
{
    switch (node->kind) {
    case 'f':
        dv_buf_add_char(buf, '.');
        dv_buf_add(buf, node->text);
        break;
    case 'k':
        print_keys(node->text, buf, arena);
        break;
    case 'v':
        dv_buf_printf(buf, "[=%.*s]", DV_FMT(node->text));
        break;
    default:
        dv_buf_printf(buf, "[%.*s]", DV_FMT(node->text));
        break;
    }
}

struct each {
    struct dv_buf path;
    struct dv_arena *arena;
    void (*call)(void *data, dv_str path);
    void *data;
};

/* The members of a level before what is under them: so the reference tells conflicts.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void each_node(const struct dv_fields *node, struct each *each)
{
    size_t n = each->path.n;

    for (size_t i = 0; i < node->n; i++) {
        if (node->v[i].in == DV_FIELDS_OUT)
            continue;
        print_step(&node->v[i], &each->path, each->arena);
        each->call(each->data, dv_buf_str(&each->path));
        each->path.n = n;
    }
    for (size_t i = 0; i < node->n; i++) {
        if (node->v[i].n == 0)
            continue;
        print_step(&node->v[i], &each->path, each->arena);
        each_node(&node->v[i], each);
        each->path.n = n;
    }
}

void dv_fields_each(const struct dv_fields *fields, struct dv_arena *arena,
                    void (*call)(void *data, dv_str path), void *data)
{
    struct each each = {.arena = arena, .call = call, .data = data};

    dv_buf_init(&each.path, PATH_BYTES_MAX);
    each_node(fields, &each);
    dv_buf_fini(&each.path);
}
