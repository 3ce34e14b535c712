/* json_read.c - JSON text into a tree.
 *
 * By hand rather than with jansson, because what our callers need it cannot give: lines and columns
 * of nodes, the text of numbers (an unsigned 64-bit integer is an error or a double there), both
 * places of a duplicate key, Go's reading of broken Unicode, limits on depth and nodes, memory from
 * an arena, strings that stay in the body they came in. Figures of both: bench_json.c.
 *
 * One pass, no recursion: the innermost open container is the whole state, since the tree knows
 * what is around it. */
#include "json/tree.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

struct reader {
    const char *at;
    const char *end;
    const char *line_start; /* moved on by bytes that continue a character, which make no column */
    uint32_t line;
    uint32_t depth;
    uint32_t depth_max;
    size_t nodes_left;
    bool refuse_duplicates;
    bool replace_bad_utf8;
    bool places_values;
    struct dv_json *open; /* the innermost container that is not complete; NULL around the root */
    struct dv_json_text *text;
    struct dv_arena *arena;
    struct dv_err *err;
};

static uint32_t column_of(const struct reader *r, const char *at)
{
    return dv_json_clamp_column((size_t)(at - r->line_start) + 1);
}

static bool fail(const struct reader *r, const char *at, const char *what)
{
    return dv_json_fail_at(r->line, column_of(r, at), DV_INVALID_ARGUMENT, r->err, "%s", what);
}

/* "expected a value, got 'x'" for what stands at r->at. */
static bool fail_expected(const struct reader *r, const char *what)
{
    uint32_t column = column_of(r, r->at);
    dv_str rest = {r->at, (size_t)(r->end - r->at)};
    size_t n = dv_str_utf8_char(rest);

    if (rest.n == 0)
        return dv_json_fail_at(r->line, column, DV_INVALID_ARGUMENT, r->err,
                               "expected %s, got the end of the text", what);
    if (n == 0 || (unsigned char)rest.p[0] < 0x20 || rest.p[0] == 0x7f)
        return dv_json_fail_at(r->line, column, DV_INVALID_ARGUMENT, r->err,
                               "expected %s, got the byte 0x%02x", what,
                               (unsigned)(unsigned char)rest.p[0]);
    return dv_json_fail_at(r->line, column, DV_INVALID_ARGUMENT, r->err, "expected %s, got '%.*s'",
                           what, (int)n, rest.p);
}

static void skip_blanks(struct reader *r)
{
    for (; r->at < r->end; r->at++) {
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

static bool is_next(const struct reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

/* -- Strings -------------------------------------------------------------------------------- */

/* Over a character beyond ASCII. `*is_bad`: it is none, and is to be replaced. */
static bool skip_wide(struct reader *r, const char **at, bool *is_bad)
{
    size_t n = dv_str_utf8_char((dv_str){*at, (size_t)(r->end - *at)});

    if (n == 0) {
        if (!r->replace_bad_utf8)
            return fail(r, *at, "a string that is not UTF-8");
        *is_bad = true;
        n = 1;
    }
    *at += n;
    r->line_start += n - 1;
    return true;
}

/* Over an escape; *at is at the backslash. */
static bool skip_escape(const struct reader *r, const char **at)
{
    char c = r->end - *at >= 2 ? (*at)[1] : '\0';

    if (c != '\0' && strchr("\"\\/bfnrt", c)) {
        *at += 2;
        return true;
    }
    if (c == 'u' && dv_json_read_hex4(*at + 2, r->end) >= 0) {
        *at += 6;
        return true;
    }
    return fail(r, *at,
                c == 'u' ? "a \\u that four hexadecimal digits do not follow"
                         : "a backslash that begins no escape");
}

static bool read_string(struct reader *r, dv_str *value)
{
    const char *line_start = r->line_start;
    const char *start = r->at + 1;
    const char *at = start;
    bool is_escaped = false;
    size_t n_bad = 0;

    for (;;) {
        at = dv_json_skip_plain(at, r->end);
        if (at == r->end) {
            r->line_start = line_start; /* the error is where it begins */
            return fail(r, r->at, "a string that does not end");
        }
        if (*at == '"')
            break;
        if (*at == '\\') {
            is_escaped = true;
            if (!skip_escape(r, &at))
                return false;
        } else if ((unsigned char)*at >= 0x80) {
            bool is_bad = false;

            if (!skip_wide(r, &at, &is_bad))
                return false;
            n_bad += is_bad;
        } else {
            return fail(r, at, "a control character in a string: it needs an escape");
        }
    }
    r->at = at + 1;
    if (is_escaped || n_bad > 0)
        *value = dv_json_unescape((dv_str){start, (size_t)(at - start)}, n_bad, r->arena);
    else
        *value = (dv_str){start, (size_t)(at - start)};
    return true;
}

/* -- Numbers and words ---------------------------------------------------------------------- */

static bool skip_digits(struct reader *r, const char *where)
{
    const char *start = r->at;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > start || fail_expected(r, where);
}

static bool read_number(struct reader *r, struct dv_json *node)
{
    node->text = r->at;
    if (*r->at == '-')
        r->at++;
    if (is_next(r, '0'))
        r->at++; /* nothing may follow it: 01 is no number */
    else if (!skip_digits(r, "a digit"))
        return false;
    if (is_next(r, '.')) {
        r->at++;
        if (!skip_digits(r, "a digit after the decimal point"))
            return false;
    }
    if (is_next(r, 'e') || is_next(r, 'E')) {
        r->at++;
        if (is_next(r, '+') || is_next(r, '-'))
            r->at++;
        if (!skip_digits(r, "a digit in the exponent"))
            return false;
    }
    node->n = (uint32_t)(r->at - node->text);
    return true;
}

static bool read_word(struct reader *r, dv_str word)
{
    dv_str rest = {r->at, (size_t)(r->end - r->at)};

    if (!dv_str_starts_with(rest, word))
        return fail_expected(r, "a value");
    r->at += word.n;
    return true;
}

/* -- Values --------------------------------------------------------------------------------- */

/* The kind of a value by its first character. False: no value begins so. */
static bool kind_of(char c, enum dv_json_kind *kind)
{
    switch (c) {
    case '{':
        *kind = DV_JSON_OBJECT;
        return true;
    case '[':
        *kind = DV_JSON_ARRAY;
        return true;
    case '"':
        *kind = DV_JSON_STRING;
        return true;
    case 't':
    case 'f':
        *kind = DV_JSON_BOOL;
        return true;
    case 'n':
        *kind = DV_JSON_NULL;
        return true;
    default:
        *kind = DV_JSON_NUMBER;
        return c == '-' || (c >= '0' && c <= '9');
    }
}

static bool read_scalar(struct reader *r, struct dv_json *node)
{
    dv_str text = {NULL, 0};

    switch (dv_json_kind(node)) {
    case DV_JSON_STRING:
        if (!read_string(r, &text))
            return false;
        node->text = text.p;
        node->n = (uint32_t)text.n;
        return true;
    case DV_JSON_NULL:
        return read_word(r, DV_STR("null"));
    case DV_JSON_BOOL:
        node->n = *r->at == 't';
        return read_word(r, node->n ? DV_STR("true") : DV_STR("false"));
    case DV_JSON_NUMBER:
    case DV_JSON_ARRAY:
    case DV_JSON_OBJECT:
        break;
    }
    return read_number(r, node);
}

static bool open_container(struct reader *r, struct dv_json *node)
{
    struct dv_json_container *container = DV_CONTAINER(node, struct dv_json_container, node);

    if (r->depth == r->depth_max)
        return dv_json_fail_at(node->line, node->column, DV_RESOURCE_EXHAUSTED, r->err,
                               "more than %u arrays and objects inside each other", r->depth_max);
    container->text = r->text;
    container->start = (uint32_t)(r->at - r->text->p);
    r->at++;
    r->depth++;
    r->open = node;
    return true;
}

/* Of the member that comes next, and where it begins. */
struct key {
    dv_str text;
    uint32_t line;
    uint32_t column;
};

/* The value that begins here; of a container only its bracket. Blanks before it were skipped. `key`
 * is NULL for elements and the root. */
static struct dv_json *read_value(struct reader *r, const struct key *key)
{
    enum dv_json_kind kind;
    struct dv_json *node;
    bool is_read;

    if (r->at == r->end || !kind_of(*r->at, &kind)) {
        (void)fail_expected(r, "a value");
        return NULL;
    }
    if (r->nodes_left == 0) {
        (void)dv_json_fail_at(r->line, column_of(r, r->at), DV_RESOURCE_EXHAUSTED, r->err,
                              "more values than are allowed");
        return NULL;
    }
    r->nodes_left--;
    node = dv_json_new(kind, r->arena);
    node->line = r->line;
    node->column = column_of(r, r->at) & DV_JSON_COLUMN_MAX;
    if (key) {
        node->key = key->text.p;
        node->key_n = (uint32_t)key->text.n;
        if (!r->places_values)
            dv_json_place_at_key(node, key->line, key->column);
    }
    if (r->open)
        dv_json_link(r->open, node);
    is_read = dv_json_is_container(node) ? open_container(r, node) : read_scalar(r, node);
    return is_read ? node : NULL;
}

static bool read_key(struct reader *r, struct key *key)
{
    skip_blanks(r);
    if (!is_next(r, '"'))
        return fail_expected(r, "a key in double quotes");
    key->line = r->line;
    key->column = column_of(r, r->at);
    if (!read_string(r, &key->text))
        return false;
    skip_blanks(r);
    if (!is_next(r, ':'))
        return fail_expected(r, "':' after a key");
    r->at++;
    return true;
}

/* Reads what begins inside the open container: a key and a value, or an element. */
static bool read_child(struct reader *r)
{
    bool is_member = dv_json_is(r->open, DV_JSON_OBJECT);
    struct key key;

    if (is_member && !read_key(r, &key))
        return false;
    skip_blanks(r);
    return read_value(r, is_member ? &key : NULL) != NULL;
}

static bool close_container(struct reader *r)
{
    struct dv_json *node = r->open;

    r->at++;
    r->depth--;
    DV_CONTAINER(node, struct dv_json_container, node)->end = (uint32_t)(r->at - r->text->p);
    r->open = node->next; /* it is its parent's last child */
    return !dv_json_is(node, DV_JSON_OBJECT) ||
           dv_json_seal(node, r->refuse_duplicates, r->arena, r->err);
}

/* Reads on until the container opened first is closed. */
static bool read_containers(struct reader *r)
{
    while (r->open) {
        bool is_object = dv_json_is(r->open, DV_JSON_OBJECT);
        bool is_empty = r->open->n == 0;
        const char *before = r->at;

        skip_blanks(r);
        if (is_next(r, is_object ? '}' : ']')) {
            if (!close_container(r))
                return false;
            continue;
        }
        if (!is_empty) {
            if (!is_next(r, ','))
                return fail_expected(r, is_object ? "',' or '}' after a member"
                                                  : "',' or ']' after an element");
            r->at++;
        }
        if (!read_child(r))
            return false;
        assert(r->at > before); /* or it would never end */
    }
    return true;
}

bool dv_json_is_number(dv_str text)
{
    struct dv_json node;
    struct dv_err err;
    struct reader r = {.at = text.p, .end = text.p + text.n, .line_start = text.p, .err = &err};

    return text.n > 0 && read_number(&r, &node) && r.at == r.end;
}

struct dv_json *dv_json_parse(dv_str text, const struct dv_json_opts *opts, struct dv_arena *arena,
                              struct dv_err *err)
{
    struct dv_json_opts limits = dv_json_fill_opts(opts, DV_JSON_DEPTH_MAX);
    const char *start = text.p ? text.p : "";
    struct reader r = {
        .at = start,
        .end = start + text.n,
        .line_start = start,
        .line = 1,
        .depth_max = limits.depth_max,
        .nodes_left = limits.nodes_max,
        .refuse_duplicates = limits.refuse_duplicates,
        .replace_bad_utf8 = limits.replace_bad_utf8,
        .places_values = limits.places_values,
        .arena = arena,
        .err = err,
    };
    struct dv_json *root;

    if (!dv_json_check_size(text, &limits, err))
        return NULL;
    r.text = DV_NEW(arena, struct dv_json_text);
    r.text->p = start;
    skip_blanks(&r);
    root = read_value(&r, NULL);
    if (!root || !read_containers(&r))
        return NULL;
    skip_blanks(&r);
    if (r.at < r.end) {
        (void)fail_expected(&r, "nothing after the value");
        return NULL;
    }
    return root;
}
