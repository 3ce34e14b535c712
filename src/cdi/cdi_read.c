/* cdi_read.c - the reference reads specs of both formats with a YAML reader that knows the types it
 * reads for. Hence what is unusual here: a key is found in any case, null is as good as absent, and
 * an integer or a boolean is text where text is wanted (`name: 0`). Unknown and repeated fields are
 * refused. */
#include "cdi/cdi_read.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "cdi/cdi.h"
#include "cdi/cdi_name.h"
#include "json/json.h"

/* Kubernetes' own for all annotations of an object together. */
#define ANNOTATIONS_BYTES_MAX (256u * 1024u)

static void keep_problem(struct dv_cdi_reader *reader, const char *text)
{
    if (reader->n_problems > DV_CDI_SPEC_PROBLEMS_MAX)
        return;
    if (reader->n_problems == DV_CDI_SPEC_PROBLEMS_MAX)
        text = "there is more that is wrong";
    reader->problems[reader->n_problems++] = dv_str_copy(dv_str_from_c(text), reader->arena);
}

void dv_cdi_complain(struct dv_cdi_reader *reader, const struct dv_json *node, const char *fmt, ...)
{
    char text[DV_ERR_MSG_BYTES];
    struct dv_err err;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut is fine */
    va_end(args);
    (void)dv_json_fail(node, &err, "%s", text); /* only for its place and path */
    keep_problem(reader, err.msg);
}

/* The member that counts for a key: the one in its own case, or else the first. */
static struct dv_json *find_member(const struct dv_json *node, dv_str key)
{
    struct dv_json *found = dv_json_get(node, key);

    for (struct dv_json *at = dv_json_first(node); !found && at; at = dv_json_next(at)) {
        if (dv_str_eq_nocase(dv_json_key(at), key))
            found = at;
    }
    return found;
}

struct dv_json *dv_cdi_member(const struct dv_json *node, dv_str key)
{
    struct dv_json *found = find_member(node, key);

    return dv_json_is(found, DV_JSON_NULL) ? NULL : found;
}

/* -- Values --------------------------------------------------------------------------------- */

static bool read_text(struct dv_cdi_reader *reader, const struct dv_json *node, dv_str *text)
{
    struct dv_err err;
    bool is_true;
    int64_t number;

    if (dv_json_is(node, DV_JSON_BOOL) && dv_json_as_bool(node, &is_true, &err)) {
        *text = is_true ? DV_STR("true") : DV_STR("false");
        return true;
    }
    if (dv_json_is(node, DV_JSON_NUMBER) && dv_json_as_i64(node, &number, &err)) {
        *text = dv_str_copy(dv_json_number_text(node), reader->arena);
        return true;
    }
    if (!dv_json_as_str(node, text, &err)) {
        keep_problem(reader, err.msg);
        return false;
    }
    if (dv_str_find_char(*text, '\0') < text->n) { /* would end a path or a variable early */
        dv_cdi_complain(reader, node, "has a NUL character");
        return false;
    }
    *text = dv_str_copy(*text, reader->arena);
    return true;
}

static bool read_u32(struct dv_cdi_reader *reader, const struct dv_json *node, uint32_t *value)
{
    struct dv_err err;
    uint64_t number;

    if (!dv_json_as_u64(node, &number, &err)) {
        keep_problem(reader, err.msg);
        return false;
    }
    if (number > UINT32_MAX) {
        dv_cdi_complain(reader, node, "%llu is more than 32 bits hold", (unsigned long long)number);
        return false;
    }
    *value = (uint32_t)number;
    return true;
}

static bool expect(struct dv_cdi_reader *reader, const struct dv_json *node, enum dv_json_kind kind)
{
    struct dv_err err;

    if (dv_json_expect(node, kind, &err))
        return true;
    keep_problem(reader, err.msg);
    return false;
}

/* "NAME=value", the name not empty. */
static void check_variable(struct dv_cdi_reader *reader, const struct dv_json *node, dv_str text)
{
    size_t equals = dv_str_find_char(text, '=');

    if (equals == text.n || equals == 0)
        dv_cdi_complain(reader, node, "\"%.*s\" is not NAME=value", DV_FMT(text));
}

static void read_texts(struct dv_cdi_reader *reader, const struct dv_cdi_field *field,
                       const struct dv_json *node, dv_str **texts, size_t *n_texts)
{
    if (!expect(reader, node, DV_JSON_ARRAY))
        return;
    *texts = DV_NEW_ARRAY(reader->arena, dv_str, dv_json_n(node));
    for (node = dv_json_first(node); node; node = dv_json_next(node)) {
        dv_str *text = &(*texts)[(*n_texts)++];

        if (read_text(reader, node, text) && field->kind == DV_CDI_ENV)
            check_variable(reader, node, *text);
    }
}

static void read_numbers(struct dv_cdi_reader *reader, const struct dv_json *node,
                         uint32_t **numbers, size_t *n_numbers)
{
    if (!expect(reader, node, DV_JSON_ARRAY))
        return;
    *numbers = DV_NEW_ARRAY(reader->arena, uint32_t, dv_json_n(node));
    for (node = dv_json_first(node); node; node = dv_json_next(node))
        (void)read_u32(reader, node, &(*numbers)[(*n_numbers)++]); /* complains by itself */
}

static void read_choice(struct dv_cdi_reader *reader, const struct dv_cdi_field *field,
                        const struct dv_json *node, unsigned *choice)
{
    dv_str text;

    if (!read_text(reader, node, &text))
        return;
    for (size_t i = 0; i < field->n_choices; i++) {
        if (dv_str_eq(text, dv_str_from_c(field->choices[i]))) {
            *choice = (unsigned)i;
            return;
        }
    }
    dv_cdi_complain(reader, node, "\"%.*s\" is not one that CDI knows", DV_FMT(text));
}

static void read_pairs(struct dv_cdi_reader *reader, const struct dv_json *node,
                       struct dv_cdi_annotation **pairs, size_t *n_pairs)
{
    size_t bytes = 0;

    if (!expect(reader, node, DV_JSON_OBJECT))
        return;
    *pairs = DV_NEW_ARRAY(reader->arena, struct dv_cdi_annotation, dv_json_n(node));
    for (const struct dv_json *at = dv_json_first(node); at; at = dv_json_next(at)) {
        struct dv_cdi_annotation *pair = &(*pairs)[(*n_pairs)++];
        struct dv_err err;

        pair->key = dv_str_copy(dv_json_key(at), reader->arena);
        if (!dv_cdi_check_annotation_key(pair->key, &err))
            dv_cdi_complain(reader, at, "%s", err.msg);
        (void)read_text(reader, at, &pair->value); /* complains by itself */
        bytes += pair->key.n + pair->value.n;
    }
    if (bytes > ANNOTATIONS_BYTES_MAX)
        dv_cdi_complain(reader, node, "%zu bytes of annotations: at most %u are allowed", bytes,
                        ANNOTATIONS_BYTES_MAX);
}

static void read_list(struct dv_cdi_reader *reader, const struct dv_cdi_shape *shape,
                      const struct dv_json *node, void *list, size_t *n_list)
{
    char *elements;

    if (!expect(reader, node, DV_JSON_ARRAY))
        return;
    elements =
        dv_arena_alloc_array(reader->arena, dv_json_n(node), shape->size_bytes, shape->align);
    memcpy(list, &elements, sizeof(elements)); /* a pointer to structs, whichever they are */
    for (node = dv_json_first(node); node; node = dv_json_next(node))
        dv_cdi_read(reader, shape, node, &elements[(*n_list)++ * shape->size_bytes]);
}

static void read_pointer(struct dv_cdi_reader *reader, const struct dv_cdi_shape *shape,
                         const struct dv_json *node, void *pointer)
{
    void *value = dv_arena_alloc(reader->arena, shape->size_bytes, shape->align);

    memcpy(pointer, &value, sizeof(value));
    dv_cdi_read(reader, shape, node, value);
}

/* -- Fields --------------------------------------------------------------------------------- */

static void read_flag(struct dv_cdi_reader *reader, const struct dv_json *node, bool *flag)
{
    struct dv_err err;

    if (!dv_json_as_bool(node, flag, &err))
        keep_problem(reader, err.msg);
}

static void read_value(struct dv_cdi_reader *reader, const struct dv_cdi_field *field,
                       const struct dv_json *node, char *value)
{
    void *at = value + field->at;
    void *n_at = value + field->n_at;
    struct dv_cdi_number *number = at;

    switch (field->kind) {
    case DV_CDI_TEXT:
        (void)read_text(reader, node, at); /* complains by itself */
        break;
    case DV_CDI_TEXTS:
    case DV_CDI_ENV:
        read_texts(reader, field, node, at, n_at);
        break;
    case DV_CDI_CHOICE:
        read_choice(reader, field, node, at);
        break;
    case DV_CDI_COUNT:
        (void)read_u32(reader, node, at); /* complains by itself */
        break;
    case DV_CDI_NUMBER:
        number->is_set = read_u32(reader, node, &number->value);
        break;
    case DV_CDI_NUMBERS:
        read_numbers(reader, node, at, n_at);
        break;
    case DV_CDI_FLAG:
        read_flag(reader, node, at);
        break;
    case DV_CDI_PAIRS:
        read_pairs(reader, node, at, n_at);
        break;
    case DV_CDI_LIST:
        read_list(reader, field->shape, node, at, n_at);
        break;
    case DV_CDI_POINTER:
        read_pointer(reader, field->shape, node, at);
        break;
    case DV_CDI_INLINE:
        dv_cdi_read(reader, field->shape, node, at);
        break;
    }
}

/* Whether it says anything: an older spec may have a newer field as long as it is empty. */
static bool is_used(const struct dv_cdi_field *field, const struct dv_json *node)
{
    struct dv_err err;
    bool is_true = false;
    dv_str text;

    if (field->kind == DV_CDI_PAIRS || field->kind == DV_CDI_LIST || field->kind == DV_CDI_NUMBERS)
        return dv_json_n(node) > 0;
    if (field->kind == DV_CDI_TEXT)
        return !dv_json_as_str(node, &text, &err) || text.n > 0;
    if (field->kind == DV_CDI_FLAG)
        return dv_json_as_bool(node, &is_true, &err) && is_true;
    return true;
}

static void check_release(struct dv_cdi_reader *reader, const struct dv_cdi_field *field,
                          const struct dv_json *node)
{
    bool is_removed = field->removed != DV_CDI_0_3_0 && reader->release >= field->removed;

    if ((reader->release >= field->since && !is_removed) || !is_used(field, node))
        return;
    if (is_removed)
        dv_cdi_complain(reader, node, "is not in cdiVersion %s any more",
                        dv_cdi_release_text(reader->release));
    else
        dv_cdi_complain(reader, node, "needs cdiVersion %s; this spec has %s",
                        dv_cdi_release_text(field->since), dv_cdi_release_text(reader->release));
}

static const struct dv_cdi_field *find_field(const struct dv_cdi_shape *shape, dv_str key)
{
    for (size_t i = 0; i < shape->n_fields; i++) {
        if (dv_str_eq(shape->fields[i].key, key))
            return &shape->fields[i];
    }
    for (size_t i = 0; i < shape->n_fields; i++) {
        if (dv_str_eq_nocase(shape->fields[i].key, key))
            return &shape->fields[i];
    }
    return NULL;
}

static void check_required(struct dv_cdi_reader *reader, const struct dv_cdi_shape *shape,
                           const struct dv_json *node)
{
    for (size_t i = 0; i < shape->n_fields; i++) {
        const struct dv_cdi_field *field = &shape->fields[i];
        const struct dv_json *member;
        struct dv_err err;
        dv_str text;

        if (!field->is_required)
            continue;
        member = dv_cdi_member(node, field->key);
        if (!member)
            dv_cdi_complain(reader, node, "\"%.*s\" is missing", DV_FMT(field->key));
        else if (dv_json_as_str(member, &text, &err) && text.n == 0)
            dv_cdi_complain(reader, member, "is empty");
    }
}

void dv_cdi_read(struct dv_cdi_reader *reader, const struct dv_cdi_shape *shape,
                 const struct dv_json *node, void *value)
{
    const struct dv_json *at = dv_json_first(node);

    if (!expect(reader, node, DV_JSON_OBJECT))
        return;
    /* Enough is enough: a file of nothing but problems must not take long. */
    for (; at && reader->n_problems <= DV_CDI_SPEC_PROBLEMS_MAX; at = dv_json_next(at)) {
        const struct dv_cdi_field *field = find_field(shape, dv_json_key(at));

        if (!field)
            dv_cdi_complain(reader, at, "is not a field that CDI knows");
        else if (find_member(node, field->key) != at)
            dv_cdi_complain(reader, at, "is here twice, in different case");
        else if (!dv_json_is(at, DV_JSON_NULL)) {
            check_release(reader, field, at);
            read_value(reader, field, at, value);
        }
    }
    check_required(reader, shape, node);
    if (shape->check)
        shape->check(reader, node, value);
}
