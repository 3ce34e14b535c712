/* strategic_new.c - what a strategic merge patch makes where nothing was, and what it says when it
 * is wrong. Without recursion over the patch: its depth is its sender's choice. */
#include "resource/patch/strategic.h"

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"
#include "json/json.h"

/* A container of the copy that is still to be filled. */
struct step {
    const struct dv_json *from;
    struct dv_json *out;
};

struct steps {
    struct step *v;
    size_t n;
    size_t size;
};

bool dv_patch_is_directive(dv_str key)
{
    return dv_str_eq(key, DV_STR("$patch")) || dv_str_eq(key, DV_STR("$retainKeys")) ||
           dv_str_starts_with(key, DV_STR("$setElementOrder/")) ||
           dv_str_starts_with(key, DV_STR("$deleteFromPrimitiveList/"));
}

dv_str dv_patch_text(const struct dv_json *node)
{
    struct dv_err ignored;
    dv_str text;

    return node && dv_json_as_str(node, &text, &ignored) ? text : DV_STR("");
}

static bool has_word(const struct dv_json *node, dv_str word)
{
    return dv_str_eq(dv_patch_text(dv_json_get(node, DV_STR("$patch"))), word);
}

static struct dv_json *start_copy(const struct dv_json *node, struct steps *steps,
                                  struct dv_arena *arena)
{
    struct dv_json *out;

    if (dv_json_kind(node) < DV_JSON_ARRAY)
        return dv_json_copy(node, arena);
    out = dv_json_is(node, DV_JSON_ARRAY) ? dv_json_new_array(arena) : dv_json_new_object(arena);
    if (!has_word(node, DV_STR("delete")))
        *dv_vec_add(steps) = (struct step){node, out};
    return out;
}

static void copy_children(const struct step *step, struct steps *steps, struct dv_arena *arena)
{
    bool is_list = dv_json_is(step->from, DV_JSON_ARRAY);

    for (const struct dv_json *child = dv_json_first(step->from); child;
         child = dv_json_next(child)) {
        if (is_list && dv_json_get(child, DV_STR("$patch")))
            continue; /* a directive has nothing to delete or replace here */
        if (is_list)
            dv_json_append(step->out, start_copy(child, steps, arena));
        else if (!dv_json_is(child, DV_JSON_NULL) && !dv_patch_is_directive(dv_json_key(child)))
            dv_json_set(step->out, dv_json_key(child), start_copy(child, steps, arena), arena);
    }
}

struct dv_json *dv_patch_new(const struct dv_json *patch, struct dv_arena *arena)
{
    struct steps steps = {0};
    struct dv_json *root = start_copy(patch, &steps, arena);

    while (steps.n > 0) {
        struct step step = steps.v[--steps.n];

        copy_children(&step, &steps, arena);
    }
    dv_vec_fini(&steps);
    return root;
}

/* Prints a value as Go does with %v: map[a:1 b:[x y]]. It stops where an error's message is full,
 * and so goes no deeper than that either. */
static void print_value(const struct dv_json *node, struct dv_buf *buf) /* NOLINT(misc-no-recursion)
                                                                         */
{
    bool is_first = true;

    if (buf->is_over)
        return;
    if (dv_json_kind(node) < DV_JSON_ARRAY) {
        if (dv_json_is(node, DV_JSON_NULL))
            dv_buf_add_c(buf, "<nil>");
        else if (dv_json_is(node, DV_JSON_STRING))
            dv_buf_add(buf, dv_patch_text(node));
        else
            dv_json_print(node, NULL, buf);
        return;
    }
    dv_buf_add_c(buf, dv_json_is(node, DV_JSON_OBJECT) ? "map[" : "[");
    for (const struct dv_json *child = dv_json_first(node); child && !buf->is_over;
         child = dv_json_next(child)) {
        if (!is_first)
            dv_buf_add_char(buf, ' ');
        is_first = false;
        if (dv_json_is(node, DV_JSON_OBJECT)) {
            dv_buf_add(buf, dv_json_key(child));
            dv_buf_add_char(buf, ':');
        }
        print_value(child, buf);
    }
    dv_buf_add_char(buf, ']');
}

bool dv_patch_no_key(const struct dv_json *item, dv_str key, struct dv_err *err)
{
    struct dv_buf buf;

    dv_buf_init(&buf, DV_ERR_MSG_BYTES);
    print_value(item, &buf);
    (void)dv_fail(err, DV_INTERNAL, "map: %s does not contain declared merge key: %.*s",
                  dv_buf_c(&buf), DV_FMT(key));
    dv_buf_fini(&buf);
    return false;
}

bool dv_patch_bad_type(const struct dv_json *directive, const struct dv_json *patch,
                       struct dv_err *err)
{
    struct dv_buf word;
    struct dv_buf map;

    dv_buf_init(&word, DV_ERR_MSG_BYTES);
    dv_buf_init(&map, DV_ERR_MSG_BYTES);
    print_value(directive, &word);
    print_value(patch, &map);
    (void)dv_fail(err, DV_INTERNAL, "unknown patch type: %s in map: %s", dv_buf_c(&word),
                  dv_buf_c(&map));
    dv_buf_fini(&word);
    dv_buf_fini(&map);
    return false;
}

bool dv_patch_no_list(const struct dv_json *node, struct dv_err *err)
{
    static const char *const names[] = {"<nil>",  "bool",           "int64",
                                        "string", "[]interface {}", "map[string]interface {}"};

    return dv_fail(err, DV_INTERNAL, "expected a []interface {}, but received a %s",
                   names[dv_json_kind(node)]);
}
