/* json_value.c - values out of a document: each reader says by path and line what is wrong, in the
 * words of Go's decoder where the reference's answers have them. */
#include "json/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/vec.h"

/* The length of a path in an error, whose message has 256 bytes: the end of a path says most. */
#define ERROR_PATH_BYTES 120u
/* A path that is not shown in full need not be built in full. */
#define PATH_BYTES_MAX (64u * 1024u)

static dv_str text_of(const struct dv_json *node)
{
    return (dv_str){node->text, node->n};
}

const char *dv_json_kind_name(enum dv_json_kind kind)
{
    static const char *const names[] = {
        [DV_JSON_NULL] = "null",       [DV_JSON_BOOL] = "a boolean", [DV_JSON_NUMBER] = "a number",
        [DV_JSON_STRING] = "a string", [DV_JSON_ARRAY] = "an array", [DV_JSON_OBJECT] = "an object",
    };

    return names[kind];
}

const char *dv_json_go_name(enum dv_json_kind kind)
{
    switch (kind) {
    case DV_JSON_NULL:
        return "null";
    case DV_JSON_BOOL:
        return "bool";
    case DV_JSON_NUMBER:
        return "number";
    case DV_JSON_STRING:
        return "string";
    case DV_JSON_ARRAY:
        return "array";
    case DV_JSON_OBJECT:
        return "object";
    }
    return "value";
}

bool dv_json_is_go_field(dv_str key, const char *name)
{
    size_t i = 0;

    for (; *name; name++) {
        dv_str rest = dv_str_slice(key, i, key.n);
        char lower = (char)(*name | 0x20);

        if (rest.n > 0 && (rest.p[0] | 0x20) == lower)
            i += 1;
        else if (lower == 's' && dv_str_starts_with(rest, DV_STR("\xc5\xbf")))
            i += 2;
        else if (lower == 'k' && dv_str_starts_with(rest, DV_STR("\xe2\x84\xaa")))
            i += 3;
        else
            return false;
    }
    return i == key.n;
}

/* -- Errors that name a node ---------------------------------------------------------------- */

static bool is_plain_key(dv_str key)
{
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return key.n > 0;
}

static void print_step(const struct dv_json *parent, const struct dv_json *node, struct dv_buf *buf)
{
    size_t i = 0;

    if (dv_json_is(parent, DV_JSON_ARRAY)) {
        for (const struct dv_json *child = parent->first; child != node; child = child->next)
            i++;
        dv_buf_printf(buf, "[%zu]", i);
    } else if (is_plain_key(dv_json_key(node))) {
        if (buf->n > 0)
            dv_buf_add_char(buf, '.');
        dv_buf_add(buf, dv_json_key(node));
    } else {
        dv_buf_add_char(buf, '[');
        dv_buf_add(buf, dv_json_key(node));
        dv_buf_add_char(buf, ']');
    }
}

/* "spec.containers[0].name", "metadata.labels[a.b/c]"; nothing for a root. */
static void print_path(const struct dv_json *node, struct dv_buf *buf)
{
    DV_VEC(const struct dv_json *) steps = {0}; /* from the node up to the root */

    for (; node; node = dv_json_parent(node))
        *dv_vec_add(&steps) = node;
    for (size_t i = steps.n; i > 1; i--)
        print_step(steps.v[i - 1], steps.v[i - 2], buf);
    dv_vec_fini(&steps);
}

/* The path and ": ", or its end when it is long. */
static void describe_path(const struct dv_json *node, char text[ERROR_PATH_BYTES + 8])
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str path;
    bool is_cut;

    dv_buf_init(&buf, PATH_BYTES_MAX);
    print_path(node, &buf);
    path = dv_buf_str(&buf);
    is_cut = path.n > ERROR_PATH_BYTES;
    if (is_cut)
        path = dv_str_slice(path, path.n - ERROR_PATH_BYTES, path.n);
    while (is_cut && path.n > 0 && ((unsigned char)path.p[0] & 0xc0) == 0x80)
        path = dv_str_slice(path, 1, path.n); /* begin at a character */
    (void)snprintf(text, ERROR_PATH_BYTES + 8, "%s%.*s%s", is_cut ? "..." : "", DV_FMT(path),
                   path.n > 0 ? ": " : "");
}

bool dv_json_fail_at(uint32_t line, uint32_t column, enum dv_code code, struct dv_err *err,
                     const char *fmt, ...)
{
    char msg[DV_ERR_MSG_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, args); /* cut when long, as every message */
    va_end(args);
    if (line == 0)
        return dv_fail(err, code, "%s", msg);
    return dv_fail(err, code, "line %u, column %u: %s", line, column, msg);
}

bool dv_json_fail(const struct dv_json *node, struct dv_err *err, const char *fmt, ...)
{
    char msg[DV_ERR_MSG_BYTES];
    char path[ERROR_PATH_BYTES + 8];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);
    describe_path(node, path);
    return dv_json_fail_at(node->line, node->column, DV_INVALID_ARGUMENT, err, "%s%s", path, msg);
}

/* -- Values --------------------------------------------------------------------------------- */

bool dv_json_expect(const struct dv_json *node, enum dv_json_kind kind, struct dv_err *err)
{
    if (dv_json_is(node, kind))
        return true;
    return dv_json_fail(node, err, "expected %s, got %s", dv_json_kind_name(kind),
                        dv_json_kind_name(dv_json_kind(node)));
}

struct dv_json *dv_json_require(const struct dv_json *object, dv_str key, struct dv_err *err)
{
    struct dv_json *member;

    if (!dv_json_expect(object, DV_JSON_OBJECT, err))
        return NULL;
    member = dv_json_get(object, key);
    if (!member)
        (void)dv_json_fail(object, err, "\"%.*s\" is missing", DV_FMT(key));
    return member;
}

bool dv_json_as_str(const struct dv_json *node, dv_str *value, struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_STRING, err))
        return false;
    *value = text_of(node);
    return true;
}

bool dv_json_as_bool(const struct dv_json *node, bool *value, struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_BOOL, err))
        return false;
    *value = node->n != 0;
    return true;
}

static bool fail_range(const struct dv_json *node, const char *what, struct dv_err *err)
{
    (void)dv_json_fail(node, err, "%.*s is not %s", DV_FMT(text_of(node)), what);
    err->code = DV_OUT_OF_RANGE;
    return false;
}

bool dv_json_as_i64(const struct dv_json *node, int64_t *value, struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_NUMBER, err))
        return false;
    return dv_str_to_i64(text_of(node), value) || fail_range(node, "a 64-bit integer", err);
}

bool dv_json_as_u64(const struct dv_json *node, uint64_t *value, struct dv_err *err)
{
    if (!dv_json_expect(node, DV_JSON_NUMBER, err))
        return false;
    return dv_str_to_u64(text_of(node), value) ||
           fail_range(node, "an unsigned 64-bit integer", err);
}

dv_str dv_json_number_text(const struct dv_json *node)
{
    assert(dv_json_is(node, DV_JSON_NUMBER));
    return text_of(node);
}

/* -- New nodes ------------------------------------------------------------------------------ */

struct dv_json *dv_json_new_null(struct dv_arena *arena)
{
    return dv_json_new(DV_JSON_NULL, arena);
}

struct dv_json *dv_json_new_bool(bool value, struct dv_arena *arena)
{
    struct dv_json *node = dv_json_new(DV_JSON_BOOL, arena);

    node->n = value;
    return node;
}

static struct dv_json *new_text(enum dv_json_kind kind, dv_str text, struct dv_arena *arena)
{
    struct dv_json *node = dv_json_new(kind, arena);

    assert(text.n <= INT32_MAX);
    node->text = dv_str_copy(text, arena).p;
    node->n = (uint32_t)text.n;
    return node;
}

struct dv_json *dv_json_new_i64(int64_t value, struct dv_arena *arena)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRId64, value);

    return new_text(DV_JSON_NUMBER, (dv_str){text, (size_t)n}, arena);
}

struct dv_json *dv_json_new_u64(uint64_t value, struct dv_arena *arena)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIu64, value);

    return new_text(DV_JSON_NUMBER, (dv_str){text, (size_t)n}, arena);
}

struct dv_json *dv_json_new_double(double value, struct dv_arena *arena)
{
    char text[DV_JSON_DOUBLE_BYTES];

    dv_json_double_to_text(value, text);
    return new_text(DV_JSON_NUMBER, dv_str_from_c(text), arena);
}

struct dv_json *dv_json_new_str(dv_str value, struct dv_arena *arena)
{
    return new_text(DV_JSON_STRING, dv_json_to_utf8(value, arena), arena);
}

struct dv_json *dv_json_new_array(struct dv_arena *arena)
{
    return dv_json_new(DV_JSON_ARRAY, arena);
}

struct dv_json *dv_json_new_object(struct dv_arena *arena)
{
    return dv_json_new(DV_JSON_OBJECT, arena);
}
