/* problem.c - problems, their paths and the values they show. */
#include "resource/validate/problem.h"

#include <stdarg.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/visible.h"
#include "number/number.h"
#include "resource/go_print.h"
#include "resource/values.h"
#include "json/json.h"

/* Large enough for what a request may contain, quoted twice. */
#define TEXT_BYTES_MAX (64u * 1024u * 1024u)

/* Up to this many texts are compared pair by pair, and more by their hash. */
#define FEW 8u

const char *dv_problem_reason(enum dv_problem_type type)
{
    static const char *const reasons[] = {
        [DV_PROBLEM_REQUIRED] = "FieldValueRequired",
        [DV_PROBLEM_INVALID] = "FieldValueInvalid",
        [DV_PROBLEM_NOT_SUPPORTED] = "FieldValueNotSupported",
        [DV_PROBLEM_DUPLICATE] = "FieldValueDuplicate",
        [DV_PROBLEM_FORBIDDEN] = "FieldValueForbidden",
        [DV_PROBLEM_TOO_LONG] = "FieldValueTooLong",
        [DV_PROBLEM_TOO_MANY] = "FieldValueTooMany",
        [DV_PROBLEM_NOT_FOUND] = "FieldValueNotFound",
    };

    return reasons[type];
}

static const char *type_text(enum dv_problem_type type)
{
    static const char *const texts[] = {
        [DV_PROBLEM_REQUIRED] = "Required value",
        [DV_PROBLEM_INVALID] = "Invalid value",
        [DV_PROBLEM_NOT_SUPPORTED] = "Unsupported value",
        [DV_PROBLEM_DUPLICATE] = "Duplicate value",
        [DV_PROBLEM_FORBIDDEN] = "Forbidden",
        [DV_PROBLEM_TOO_LONG] = "Too long",
        [DV_PROBLEM_TOO_MANY] = "Too many",
        [DV_PROBLEM_NOT_FOUND] = "Not found",
    };

    return texts[type];
}

static void print_path(const struct dv_field_path *path, struct dv_buf *buf)
{
    const struct dv_field_path *steps[160]; /* twice what a schema may be deep, and more */
    size_t n = 0;

    for (; path && n < DV_COUNT(steps); path = path->up)
        steps[n++] = path;
    while (n > 0) {
        const struct dv_field_path *step = steps[--n];

        switch (step->kind) {
        case PATH_NAME:
            dv_buf_printf(buf, "%s%s", buf->n > 0 ? "." : "", step->name);
            break;
        case PATH_INDEX:
            dv_buf_printf(buf, "[%zu]", step->index);
            break;
        case PATH_KEY:
            dv_buf_printf(buf, "[%.*s]", DV_FMT(step->key));
            break;
        case PATH_TEXT:
            dv_buf_printf(buf, "%s%.*s", buf->n > 0 ? "." : "", DV_FMT(step->key));
            break;
        }
    }
}

static void print_bad(struct dv_bad_value bad, struct dv_buf *buf)
{
    switch (bad.kind) {
    case BAD_NONE:
        return;
    case BAD_NULL:
        dv_buf_add_c(buf, ": null");
        return;
    case BAD_STRING:
        dv_buf_add_c(buf, ": ");
        dv_go_quote(bad.text, buf);
        return;
    case BAD_NUMBER:
        dv_buf_add_c(buf, ": ");
        dv_buf_add_i64(buf, bad.number);
        return;
    case BAD_BOOL:
        dv_buf_add_c(buf, bad.number ? ": true" : ": false");
        return;
    case BAD_JSON:
        dv_buf_add_c(buf, ": ");
        dv_buf_add(buf, bad.text);
        return;
    }
}

bool dv_problems_are_full(const struct dv_problems *problems)
{
    return problems->n >= DV_PROBLEMS_MAX || problems->n_bytes >= DV_PROBLEMS_BYTES_MAX;
}

void dv_problem_add(struct dv_problems *problems, enum dv_problem_type type,
                    const struct dv_field_path *path, const char *name, struct dv_bad_value bad,
                    const char *fmt, ...)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_field_path child = dv_path_name(path, name);
    struct dv_problem *problem;
    size_t detail_at;
    va_list args;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (dv_problems_are_full(problems))
        return;
    problem = dv_vec_add_in(problems, problems->arena);
    problem->type = type;
    print_path(name ? &child : path, &buf);
    problem->field = dv_str_copy(dv_buf_str(&buf), problems->arena);
    dv_buf_clear(&buf);
    dv_buf_add_c(&buf, type_text(type));
    print_bad(bad, &buf);
    detail_at = buf.n;
    dv_buf_add_c(&buf, ": ");
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    if (buf.n == detail_at + 2) /* an empty detail has no colon either */
        buf.n = detail_at;
    problem->detail = dv_str_copy(dv_buf_str(&buf), problems->arena);
    problems->n_bytes += problem->field.n + problem->detail.n;
}

void dv_required(struct dv_problems *problems, const struct dv_field_path *path, const char *name)
{
    dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, name, dv_bad_none(), "%s", "");
}

void dv_too_long(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                 size_t max)
{
    dv_problem_add(problems, DV_PROBLEM_TOO_LONG, path, name, dv_bad_none(),
                   "may not be more than %zu bytes", max);
}

void dv_too_many(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                 size_t n, size_t max)
{
    dv_problem_add(problems, DV_PROBLEM_TOO_MANY, path, name, dv_bad_i64((int64_t)n),
                   "must have at most %zu items", max);
}

void dv_not_supported(struct dv_problems *problems, const struct dv_field_path *path,
                      const char *name, dv_str value, const dv_str *supported, size_t n_supported)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < n_supported; i++) {
        dv_buf_add_c(&buf, i > 0 ? ", " : "");
        dv_go_quote(supported[i], &buf);
    }
    dv_problem_add(problems, DV_PROBLEM_NOT_SUPPORTED, path, name, dv_bad_str(value),
                   "supported values: %.*s", DV_FMT(dv_buf_str(&buf)));
}

void dv_immutable(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                  struct dv_bad_value bad)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, bad, "field is immutable");
}

static struct dv_bad_value bad_json(const struct dv_json *json, struct dv_arena *arena)
{
    static const struct dv_json_style style = {.escape_html = true};
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_json_print(json, &style, &buf);
    return (struct dv_bad_value){.kind = BAD_JSON, .text = dv_str_copy(dv_buf_str(&buf), arena)};
}

struct dv_bad_value dv_bad_message(const struct dv_message *message, const void *value,
                                   struct dv_arena *arena)
{
    return bad_json(dv_go_value(message, value, arena), arena);
}

struct dv_bad_value dv_bad_messages(const struct dv_message *message, const void *values, size_t n,
                                    struct dv_arena *arena)
{
    return bad_json(dv_go_list(message, values, n, arena), arena);
}

struct dv_bad_value dv_bad_strs(const dv_str *texts, size_t n, struct dv_arena *arena)
{
    struct dv_json *array = dv_json_new_array(arena);

    if (!texts)
        return dv_bad_null();
    for (size_t i = 0; i < n; i++)
        dv_json_append(array, dv_json_new_str(texts[i], arena));
    return bad_json(array, arena);
}

struct dv_bad_value dv_bad_entries(const struct dv_str_entry *entries, size_t n,
                                   struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    if (n == 0)
        return dv_bad_null();
    for (size_t i = 0; i < n; i++)
        dv_json_set(object, entries[i].key, dv_json_new_str(entries[i].value, arena), arena);
    return bad_json(object, arena);
}

struct dv_bad_value dv_bad_object(const struct dv_bad_member *members, size_t n,
                                  struct dv_arena *arena)
{
    struct dv_json *object = dv_json_new_object(arena);

    for (size_t i = 0; i < n; i++)
        dv_json_set(object, dv_str_from_c(members[i].name),
                    dv_json_new_str(members[i].value, arena), arena);
    return bad_json(object, arena);
}

struct dv_bad_value dv_bad_set(const struct dv_set_field *fields, size_t n, struct dv_arena *arena)
{
    dv_str text = DV_STR("");

    for (size_t i = 0; i < n; i++)
        if (fields[i].is_set)
            text = dv_str_printf(arena, "%.*s%s`%s`", DV_FMT(text), text.n > 0 ? ", " : "",
                                 fields[i].name);
    return dv_bad_str(dv_str_printf(arena, "{%.*s}", DV_FMT(text)));
}

struct dv_bad_value dv_bad_quantity(const struct dv_quantity *quantity, struct dv_arena *arena)
{
    return dv_bad_str(dv_quantity_text(quantity, arena));
}

static dv_str key_at(const void *keys, size_t stride, size_t i)
{
    return *(const dv_str *)(const void *)((const char *)keys + i * stride);
}

/* Whether a key was there before, by a table of indices plus one. */
static bool is_repeated(const void *keys, size_t stride, size_t i, uint32_t *slots, size_t n_slots)
{
    dv_str key = key_at(keys, stride, i);
    size_t slot;

    if (!slots) {
        for (size_t j = 0; j < i; j++)
            if (dv_str_eq(key_at(keys, stride, j), key))
                return true;
        return false;
    }
    for (slot = dv_hash(key) & (n_slots - 1); slots[slot]; slot = (slot + 1) & (n_slots - 1))
        if (dv_str_eq(key_at(keys, stride, slots[slot] - 1), key))
            return true;
    slots[slot] = (uint32_t)(i + 1);
    return false;
}

void dv_check_unique(struct dv_problems *problems, const struct dv_field_path *path,
                     const char *name, const void *keys, size_t n, size_t stride)
{
    uint32_t *slots = NULL;
    size_t n_slots = 2 * FEW;

    if (n > FEW) {
        while (n_slots < 2 * n)
            n_slots *= 2;
        slots = DV_NEW_ARRAY(problems->arena, uint32_t, n_slots);
    }
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        if (is_repeated(keys, stride, i, slots, n_slots))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, name,
                           dv_bad_str(key_at(keys, stride, i)), "%s", "");
    }
}
