#include "json/jsonpath.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "json/json.h"

/* Ranges inside each other: people write two. */
#define DEPTH_MAX 16u
/* What a path may find: as many nodes as a document can have. */
#define NODES_MAX DV_JSON_NODES_MAX

struct set {
    const struct dv_json **v;
    size_t n;
    size_t size;
};

/* A template that is being read; `at` is the next character. */
struct reading {
    dv_str text;
    size_t at;
    const struct dv_json *root;
    struct dv_arena *arena;
    struct dv_buf *buf;
    struct dv_err *err;
    bool is_over; /* a path found more than the limit */
};

static bool fail(struct reading *r, const char *what)
{
    return dv_fail(r->err, DV_INVALID_ARGUMENT, "jsonpath, character %zu: %s", r->at + 1, what);
}

static char peek(const struct reading *r)
{
    return r->at < r->text.n ? r->text.p[r->at] : '\0';
}

static bool take(struct reading *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool take_text(struct reading *r, const char *text)
{
    dv_str rest = dv_str_slice(r->text, r->at, r->text.n);

    if (!dv_str_starts_with(rest, dv_str_from_c(text)))
        return false;
    r->at += strlen(text);
    return true;
}

static void skip_blanks(struct reading *r)
{
    while (peek(r) == ' ')
        r->at++;
}

static void add(struct reading *r, struct set *set, const struct dv_json *node)
{
    r->is_over |= set->n == NODES_MAX;
    if (node && !r->is_over)
        *dv_vec_add_in(set, r->arena) = node;
}

static void add_children(struct reading *r, struct set *set, const struct dv_json *node)
{
    for (const struct dv_json *child = dv_json_first(node); child; child = dv_json_next(child))
        add(r, set, child);
}

/* ---- text ---- */

/* Reads a quoted text, whose quote comes next. */
static bool read_quoted(struct reading *r, dv_str *text)
{
    char *copy = DV_NEW_ARRAY(r->arena, char, r->text.n - r->at);
    char quote = r->text.p[r->at++];
    size_t n = 0;

    while (r->at < r->text.n && peek(r) != quote) {
        char c = r->text.p[r->at++];

        if (c == '\\' && r->at < r->text.n) {
            c = r->text.p[r->at++];
            c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
        }
        copy[n++] = c;
    }
    *text = (dv_str){copy, n};
    return take(r, quote) || fail(r, "the quoted text has no end");
}

/* Reads a key after a dot, up to what cannot be in one; a backslash makes any character a part. */
static dv_str read_key(struct reading *r)
{
    char *copy = DV_NEW_ARRAY(r->arena, char, r->text.n - r->at + 1);
    size_t n = 0;

    while (r->at < r->text.n && !strchr(".[]{}()=!<> ", peek(r))) {
        if (peek(r) == '\\' && r->at + 1 < r->text.n)
            r->at++;
        copy[n++] = r->text.p[r->at++];
    }
    return (dv_str){copy, n};
}

/* ---- steps of a path ---- */

static void step_key(struct reading *r, dv_str key, struct set *set)
{
    struct set next = {0};

    for (size_t i = 0; i < set->n; i++)
        if (dv_str_eq(key, DV_STR("*")))
            add_children(r, &next, set->v[i]);
        else
            add(r, &next, dv_json_get(set->v[i], key));
    *set = next;
}

/* All nodes under those of the set, and themselves. */
static void step_deep(struct reading *r, struct set *set)
{
    for (size_t i = 0; i < set->n; i++)
        add_children(r, set, set->v[i]);
}

/* What a pair of brackets selects; a negative number counts from the end. */
struct slice {
    bool is_one; /* "[1]": the element `from` alone */
    int64_t from;
    int64_t to;
    int64_t step;
};

static void add_slice(struct reading *r, const struct slice *slice, const struct dv_json *list,
                      struct set *set)
{
    int64_t n = dv_json_is(list, DV_JSON_ARRAY) ? (int64_t)dv_json_n(list) : 0;
    int64_t from = slice->from < 0 ? slice->from + n : slice->from;
    int64_t to = slice->to < 0 ? slice->to + n : slice->to;

    if (slice->is_one) {
        if (from >= 0 && from < n)
            add(r, set, dv_json_at(list, (size_t)from));
        return;
    }
    for (int64_t k = from < 0 ? 0 : from; k < to && k < n; k += slice->step) {
        add(r, set, dv_json_at(list, (size_t)k));
        if (k > INT64_MAX - slice->step)
            break;
    }
}

/* "[1]", "[-1]", "[0:2]", "[::2]": each part may be left out. */
static bool read_slice(struct reading *r, struct set *set)
{
    size_t end = r->at + dv_str_find_char(dv_str_slice(r->text, r->at, r->text.n), ']');
    dv_str rest = dv_str_slice(r->text, r->at, end);
    struct slice slice = {.is_one = dv_str_find_char(rest, ':') == rest.n};
    int64_t given[3] = {0, INT64_MAX, 1};
    struct set next = {0};
    dv_str part;

    if (end == r->text.n)
        return fail(r, "a bracket has no end");
    for (size_t i = 0; rest.n > 0 && dv_str_split(&rest, ':', &part); i++)
        if (i == DV_COUNT(given) || (part.n > 0 && !dv_str_to_i64(part, &given[i])))
            return fail(r, "not an index: [1], [-1], [0:2], [*], ['key'], [?(@.key==\"value\")]");
    if (given[2] <= 0)
        return fail(r, "a step is above zero");
    r->at = end + 1;
    slice.from = given[0];
    slice.to = given[1];
    slice.step = given[2];
    for (size_t i = 0; i < set->n; i++)
        add_slice(r, &slice, set->v[i], &next);
    *set = next;
    return true;
}

static bool read_path(struct reading *r, const struct dv_json *current, struct set *set);

/* A side of a comparison: a path from the element, or a value. */
static bool read_operand(struct reading *r, const struct dv_json *element,
                         const struct dv_json **value)
{
    struct set set = {0};
    size_t from;
    dv_str text;

    skip_blanks(r);
    if (peek(r) == '@' || peek(r) == '$' || peek(r) == '.') {
        if (!read_path(r, element, &set))
            return false;
        *value = set.n > 0 ? set.v[0] : NULL;
    } else if (peek(r) == '"' || peek(r) == '\'') {
        if (!read_quoted(r, &text))
            return false;
        *value = dv_json_new_str(text, r->arena);
    } else {
        from = r->at;
        while (r->at < r->text.n && !strchr(")=!<> ", peek(r)))
            r->at++;
        *value = dv_json_parse(dv_str_slice(r->text, from, r->at), NULL, r->arena, r->err);
        if (!*value)
            return fail(r, "neither a path (@.key), a number nor a quoted text");
    }
    skip_blanks(r);
    return true;
}

/* Compares two values, which are both numbers or both texts. */
static int order_of(const struct dv_json *a, const struct dv_json *b, struct dv_arena *arena)
{
    struct dv_err unused;
    double p;
    double q;
    dv_str x;
    dv_str y;

    if (dv_json_as_str(a, &x, &unused) && dv_json_as_str(b, &y, &unused))
        return dv_str_cmp(x, y);
    p = strtod(dv_str_to_c(dv_json_number_text(a), arena), NULL);
    q = strtod(dv_str_to_c(dv_json_number_text(b), arena), NULL);
    return p < q ? -1 : p > q;
}

enum comparing { EXISTS, EQUAL, DIFFERS, BELOW, AT_MOST, ABOVE, AT_LEAST };

static enum comparing read_comparing(struct reading *r)
{
    static const struct {
        const char *text;
        enum comparing comparing;
    } all[] = {
        {"==", EQUAL   },
        {"!=", DIFFERS },
        {"<=", AT_MOST },
        {">=", AT_LEAST},
        {"<",  BELOW   },
        {">",  ABOVE   },
    };

    for (size_t i = 0; i < DV_COUNT(all); i++)
        if (take_text(r, all[i].text))
            return all[i].comparing;
    return EXISTS;
}

static bool is_true(const struct dv_json *a, enum comparing comparing, const struct dv_json *b,
                    struct dv_arena *arena)
{
    bool are_comparable = a && b && dv_json_kind(a) == dv_json_kind(b) &&
                          (dv_json_is(a, DV_JSON_STRING) || dv_json_is(a, DV_JSON_NUMBER));

    switch (comparing) {
    case EXISTS:
        return a != NULL;
    case EQUAL:
        return a && b && dv_json_eq(a, b);
    case DIFFERS:
        return a && b && !dv_json_eq(a, b);
    case BELOW:
        return are_comparable && order_of(a, b, arena) < 0;
    case AT_MOST:
        return are_comparable && order_of(a, b, arena) <= 0;
    case ABOVE:
        return are_comparable && order_of(a, b, arena) > 0;
    case AT_LEAST:
        return are_comparable && order_of(a, b, arena) >= 0;
    }
    return false;
}

/* Reads the filter once for one element; *is_chosen: it is true of that. */
static bool read_filter_of(struct reading *r, const struct dv_json *element, bool *is_chosen)
{
    const struct dv_json *left;
    const struct dv_json *right = NULL;
    enum comparing comparing;

    if (!read_operand(r, element, &left))
        return false;
    comparing = read_comparing(r);
    if (comparing != EXISTS && !read_operand(r, element, &right))
        return false;
    *is_chosen = is_true(left, comparing, right, r->arena);
    return take_text(r, ")]") || fail(r, "a filter is [?(@.key==\"value\")]");
}

static bool read_filter(struct reading *r, struct set *set)
{
    struct set all = {0};
    struct set next = {0};
    size_t from = r->at;
    bool is_chosen;

    for (size_t i = 0; i < set->n; i++)
        add_children(r, &all, set->v[i]);
    if (all.n == 0)
        return read_filter_of(r, NULL, &is_chosen); /* to come past it */
    for (size_t i = 0; i < all.n; i++) {
        r->at = from;
        if (!read_filter_of(r, all.v[i], &is_chosen))
            return false;
        if (is_chosen)
            add(r, &next, all.v[i]);
    }
    *set = next;
    return true;
}

static bool read_bracket(struct reading *r, struct set *set)
{
    dv_str key;

    if (take_text(r, "?("))
        return read_filter(r, set);
    if (take_text(r, "*]")) {
        step_key(r, DV_STR("*"), set);
        return true;
    }
    if (peek(r) != '\'' && peek(r) != '"')
        return read_slice(r, set);
    if (!read_quoted(r, &key))
        return false;
    step_key(r, key, set);
    return take(r, ']') || fail(r, "a bracket has no end");
}

static bool read_path(struct reading *r, const struct dv_json *current, struct set *set)
{
    *set = (struct set){0};
    if (take(r, '$'))
        current = r->root;
    else
        (void)take(r, '@');
    add(r, set, current);
    for (;;) {
        dv_str key;

        if (take(r, '[')) {
            if (!read_bracket(r, set))
                return false;
            continue;
        }
        if (r->is_over)
            return fail(r, "a path that finds too much");
        if (!take(r, '.'))
            return true;
        if (take(r, '.'))
            step_deep(r, set);
        if (peek(r) == '[')
            continue;
        key = read_key(r);
        if (key.n > 0) /* "." alone is what there is */
            step_key(r, key, set);
    }
}

/* ---- templates ---- */

static void print_value(struct reading *r, const struct dv_json *node)
{
    struct dv_err unused;
    dv_str text;

    if (dv_json_as_str(node, &text, &unused))
        dv_buf_add(r->buf, text);
    else
        dv_json_print(node, NULL, r->buf);
}

static bool read_template(struct reading *r, const struct dv_json *current, unsigned depth,
                          bool is_printed);

/* Reads what is repeated once for each node, or once for none, unprinted. */
static bool read_range(struct reading *r, const struct dv_json *current, unsigned depth,
                       bool is_printed)
{
    struct set set;
    size_t from;

    skip_blanks(r);
    if (!read_path(r, current, &set))
        return false;
    skip_blanks(r);
    if (!take(r, '}'))
        return fail(r, "a range is {range PATH}...{end}");
    if (depth == DEPTH_MAX)
        return fail(r, "too many ranges inside each other");
    from = r->at;
    if (set.n == 0 || !is_printed)
        return read_template(r, current, depth + 1, false);
    for (size_t i = 0; i < set.n; i++) {
        r->at = from;
        if (!read_template(r, set.v[i], depth + 1, true))
            return false;
    }
    return true;
}

/* Reads a path or a quoted text. */
static bool read_value(struct reading *r, const struct dv_json *current, bool is_printed)
{
    struct set set;
    dv_str text;

    if (peek(r) == '"' || peek(r) == '\'') {
        if (!read_quoted(r, &text))
            return false;
        if (is_printed)
            dv_buf_add(r->buf, text);
        return true;
    }
    if (!peek(r) || !strchr(".[@$", peek(r)))
        return fail(r, "neither a path (.key), a quoted text, range nor end");
    if (!read_path(r, current, &set))
        return false;
    for (size_t i = 0; i < set.n && is_printed; i++) {
        if (i > 0)
            dv_buf_add_char(r->buf, ' ');
        print_value(r, set.v[i]);
    }
    return true;
}

/* Reads paths and quoted texts up to the brace. */
static bool read_values(struct reading *r, const struct dv_json *current, bool is_printed)
{
    skip_blanks(r);
    while (r->at < r->text.n && !take(r, '}')) {
        if (!read_value(r, current, is_printed))
            return false;
        skip_blanks(r);
        if (r->at == r->text.n)
            return fail(r, "a brace has no end");
    }
    return true;
}

/* Reads up to the end, or up to the {end} of a range. */
static bool read_template(struct reading *r, const struct dv_json *current, unsigned depth,
                          bool is_printed)
{
    while (r->at < r->text.n) {
        if (!take(r, '{')) {
            if (is_printed)
                dv_buf_add_char(r->buf, peek(r));
            r->at++;
            continue;
        }
        skip_blanks(r);
        if (take_text(r, "end}"))
            return depth > 0 || fail(r, "an end without a range");
        if (take_text(r, "range") ? !read_range(r, current, depth, is_printed)
                                  : !read_values(r, current, is_printed))
            return false;
    }
    return depth == 0 || fail(r, "a range has no {end}");
}

bool dv_jsonpath_print(dv_str template, const struct dv_json *doc, struct dv_arena *arena,
                       struct dv_buf *buf, struct dv_err *err)
{
    struct reading r = {.root = doc, .arena = arena, .buf = buf, .err = err, .text = template};

    if (template.n > 0 && strchr(".$[", template.p[0]) &&
        dv_str_find_char(template, '{') == template.n)
        r.text = dv_str_printf(arena, "{%.*s}", DV_FMT(template));
    return read_template(&r, doc, 0, true);
}

bool dv_jsonpath_first(dv_str path, const struct dv_json *doc, struct dv_arena *arena,
                       const struct dv_json **found, struct dv_err *err)
{
    struct reading r = {.root = doc, .arena = arena, .err = err, .text = path};
    struct set set;

    if (!peek(&r) || !strchr(".[@$", peek(&r)))
        return fail(&r, "not a path like .key");
    if (!read_path(&r, doc, &set))
        return false;
    if (r.at < r.text.n)
        return fail(&r, "something follows the path");
    *found = set.n > 0 ? set.v[0] : NULL;
    return true;
}
