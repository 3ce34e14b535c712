/* patch_json.c - JSON patch (RFC 6902), with the manners of the reference: indices may be negative
 * and count from the end, what all copies add is bounded, a member that is not there can be
 * replaced and copied (it is null), and a value that is left out is null. */
#include "resource/patch.h"

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "json/json.h"

/* The API's own limit for one patch. */
#define OPERATIONS_MAX 10000u
/* What the copies of one patch may add together: without it, each copy could double the document.
 * The reference has the same number. */
#define COPY_BYTES_MAX (3u * 1024u * 1024u)
/* Children that the operations of one patch may walk past: finding the n-th element costs n, so ten
 * thousand operations on a long list would take minutes. */
#define WALK_MAX (64u * 1024u * 1024u)

/* A patch that is being applied. */
struct work {
    struct dv_json *root;
    struct dv_arena *arena;
    struct dv_err *err;
    size_t n_walked;
    size_t n_copied; /* bytes */
};

/* A place that a pointer names: a member or an element, which may not be there yet. */
struct place {
    struct dv_json *parent; /* NULL: the document itself */
    dv_str key;             /* the last step, without escapes */
    struct dv_json *node;   /* NULL when there is none */
    size_t i;               /* in an array */
};

/* Refuses with the one sentence that the reference has for every patch that does not apply. */
static bool refuse(struct work *work)
{
    return dv_fail(work->err, DV_FAILED_PRECONDITION,
                   "the server rejected our request due to an error in our request");
}

static const char *go_kind(const struct dv_json *node)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};

    return names[dv_json_kind(node)];
}

/* "~1" is a slash, "~0" a tilde. */
static dv_str unescape(dv_str step, struct dv_arena *arena)
{
    char *out;
    size_t n = 0;

    if (dv_str_find_char(step, '~') == step.n)
        return step;
    out = dv_arena_alloc_raw(arena, step.n, 1);
    for (size_t i = 0; i < step.n; i++) {
        bool is_escape =
            step.p[i] == '~' && i + 1 < step.n && (step.p[i + 1] == '0' || step.p[i + 1] == '1');

        if (is_escape)
            i++;
        out[n++] = is_escape ? (step.p[i] == '1' ? '/' : '~') : step.p[i];
    }
    return (dv_str){out, n};
}

/* Parses an index of an array with `n` elements; below zero it counts from the end. */
static bool parse_index(dv_str key, size_t n, size_t *i)
{
    int64_t value;

    if (!dv_str_to_i64(key, &value))
        return false;
    if (value < 0) {
        if (value < -(int64_t)n)
            return false;
        value += (int64_t)n;
    }
    *i = (size_t)value;
    return true;
}

static bool walk(struct work *work, const struct dv_json *container)
{
    work->n_walked += dv_json_n(container);
    if (work->n_walked > WALK_MAX)
        return dv_fail(work->err, DV_RESOURCE_EXHAUSTED,
                       "Request entity too large: the JSON patch walks past more than %u values",
                       WALK_MAX);
    return true;
}

static struct dv_json *child(const struct dv_json *container, dv_str key)
{
    size_t i;

    if (dv_json_is(container, DV_JSON_OBJECT))
        return dv_json_get(container, key);
    if (dv_json_is(container, DV_JSON_ARRAY) && parse_index(key, dv_json_n(container), &i))
        return dv_json_at(container, i);
    return NULL;
}

/* Finds the container that the last step of `pointer` goes into, and what is there. */
static bool find(struct work *work, dv_str pointer, struct place *place)
{
    struct dv_json *node = work->root;
    dv_str rest = pointer;
    dv_str step;

    *place = (struct place){.node = node};
    if (pointer.n == 0)
        return true;
    if (pointer.p[0] != '/')
        return refuse(work);
    rest = dv_str_slice(pointer, 1, pointer.n);
    while (dv_str_split(&rest, '/', &step)) {
        if (!dv_json_is(node, DV_JSON_OBJECT) && !dv_json_is(node, DV_JSON_ARRAY))
            return refuse(work);
        if (!walk(work, node))
            return false;
        place->parent = node;
        place->key = unescape(step, work->arena);
        place->node = node = child(node, place->key);
    }
    return true;
}

static bool pointer_of(struct work *work, const struct dv_json *op, dv_str name, dv_str *pointer)
{
    struct dv_err ignored;
    const struct dv_json *member = dv_json_get(op, name);

    return (member && dv_json_as_str(member, pointer, &ignored)) || refuse(work);
}

/* Puts `value` at the place, and takes it. */
static bool put(struct work *work, const struct place *place, struct dv_json *value, bool is_new)
{
    size_t n;
    size_t i;

    if (!is_new && !place->node && !dv_json_is(place->parent, DV_JSON_OBJECT))
        return refuse(work);
    if (!place->parent) {
        work->root = value;
    } else if (dv_json_is(place->parent, DV_JSON_OBJECT)) {
        dv_json_set(place->parent, place->key, value, work->arena);
    } else if (!is_new) {
        dv_json_replace(place->node, value);
    } else {
        n = dv_json_n(place->parent);
        if (dv_str_eq(place->key, DV_STR("-")))
            i = n;
        else if (!parse_index(place->key, n + 1, &i) || i > n)
            return refuse(work);
        dv_json_insert(place->parent, i, value);
    }
    return true;
}

static bool do_put(struct work *work, const struct dv_json *op, dv_str path, bool is_new)
{
    const struct dv_json *given = dv_json_get(op, DV_STR("value"));
    struct dv_json *value =
        given ? dv_json_copy(given, work->arena) : dv_json_new_null(work->arena);
    struct place place = {0};

    return find(work, path, &place) && put(work, &place, value, is_new);
}

static bool do_add(struct work *work, const struct dv_json *op, dv_str path)
{
    return do_put(work, op, path, true);
}

static bool do_replace(struct work *work, const struct dv_json *op, dv_str path)
{
    return do_put(work, op, path, false);
}

static bool do_remove(struct work *work, const struct dv_json *op, dv_str path)
{
    struct place place = {0};

    (void)op;
    if (!find(work, path, &place))
        return false;
    if (!place.parent || !place.node)
        return refuse(work);
    dv_json_remove(place.node);
    return true;
}

static bool do_test(struct work *work, const struct dv_json *op, dv_str path)
{
    const struct dv_json *value = dv_json_get(op, DV_STR("value"));
    struct place place = {0};

    if (!find(work, path, &place))
        return false;
    if (!value || !place.node) /* for `test`, an absent value is equal to null */
        return (!value || dv_json_is(value, DV_JSON_NULL)) &&
                       (!place.node || dv_json_is(place.node, DV_JSON_NULL))
                   ? true
                   : refuse(work);
    return dv_json_eq(place.node, value) || refuse(work);
}

/* A value cannot be moved into itself. */
static bool is_inside(dv_str path, dv_str from)
{
    return dv_str_starts_with(path, from) && path.n > from.n && path.p[from.n] == '/';
}

static bool do_move(struct work *work, const struct dv_json *op, dv_str path)
{
    struct place source = {0};
    struct place target = {0};
    dv_str from = DV_STR_NONE;

    if (!pointer_of(work, op, DV_STR("from"), &from) || !find(work, from, &source))
        return false;
    if (!source.parent || !source.node || is_inside(path, from))
        return refuse(work);
    dv_json_remove(source.node);
    return find(work, path, &target) && put(work, &target, source.node, true);
}

static bool charge_copy(struct work *work, const struct dv_json *value)
{
    struct dv_buf buf;
    bool fits;

    dv_buf_init(&buf, COPY_BYTES_MAX);
    dv_json_print(value, NULL, &buf);
    work->n_copied += buf.n;
    fits = !buf.is_over && work->n_copied <= COPY_BYTES_MAX;
    dv_buf_fini(&buf);
    return fits || refuse(work);
}

static bool do_copy(struct work *work, const struct dv_json *op, dv_str path)
{
    struct place source = {0};
    struct place target = {0};
    dv_str from = DV_STR_NONE;

    if (!pointer_of(work, op, DV_STR("from"), &from) || !find(work, from, &source))
        return false;
    if (!source.node && !dv_json_is(source.parent, DV_JSON_OBJECT))
        return refuse(work);
    if (!source.node)
        source.node = dv_json_new_null(work->arena);
    return charge_copy(work, source.node) && find(work, path, &target) &&
           put(work, &target, dv_json_copy(source.node, work->arena), true);
}

static bool apply_one(struct work *work, const struct dv_json *op)
{
    static const struct {
        dv_str name;
        bool (*run)(struct work *work, const struct dv_json *op, dv_str path);
    } operations[] = {
        {DV_STR_INIT("add"),     do_add    },
        {DV_STR_INIT("copy"),    do_copy   },
        {DV_STR_INIT("move"),    do_move   },
        {DV_STR_INIT("remove"),  do_remove },
        {DV_STR_INIT("replace"), do_replace},
        {DV_STR_INIT("test"),    do_test   },
    };
    dv_str name = DV_STR_NONE;
    dv_str path = DV_STR_NONE;

    if (!pointer_of(work, op, DV_STR("op"), &name) || !pointer_of(work, op, DV_STR("path"), &path))
        return false;
    for (size_t i = 0; i < DV_COUNT(operations); i++)
        if (dv_str_eq(operations[i].name, name))
            return operations[i].run(work, op, path);
    return refuse(work);
}

/* Checks the form of all operations before any of them is done. */
static bool check_form(const struct dv_json *patch, struct dv_err *err)
{
    static const char *const texts[] = {"op", "path", "from"};

    for (const struct dv_json *op = dv_json_first(patch); op; op = dv_json_next(op)) {
        if (dv_json_is(op, DV_JSON_NULL))
            continue;
        if (!dv_json_is(op, DV_JSON_OBJECT))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "error decoding patch: json: cannot unmarshal %s into Go value of type "
                           "handlers.jsonPatchOp",
                           go_kind(op));
        for (size_t i = 0; i < DV_COUNT(texts); i++) {
            const struct dv_json *text = dv_json_get(op, dv_str_from_c(texts[i]));

            if (text && !dv_json_is(text, DV_JSON_STRING) && !dv_json_is(text, DV_JSON_NULL))
                return dv_fail(err, DV_INVALID_ARGUMENT,
                               "error decoding patch: json: cannot unmarshal %s into Go struct "
                               "field jsonPatchOp.%s of type string",
                               go_kind(text), texts[i]);
        }
    }
    return true;
}

struct dv_json *dv_patch_json(const struct dv_json *doc, const struct dv_json *patch,
                              struct dv_arena *arena, struct dv_err *err)
{
    struct work work = {.root = dv_json_copy(doc, arena), .arena = arena, .err = err};

    if (dv_json_is(patch, DV_JSON_NULL))
        return work.root;
    if (!dv_json_is(patch, DV_JSON_ARRAY)) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT,
                      "error decoding patch: json: cannot unmarshal %s into Go value of type "
                      "[]handlers.jsonPatchOp",
                      go_kind(patch));
        return NULL;
    }
    if (!check_form(patch, err))
        return NULL;
    if (dv_json_n(patch) > OPERATIONS_MAX) {
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED,
                      "Request entity too large: The allowed maximum operations in a JSON patch is "
                      "%u, got %zu",
                      OPERATIONS_MAX, dv_json_n(patch));
        return NULL;
    }
    for (const struct dv_json *op = dv_json_first(patch); op; op = dv_json_next(op))
        if (!apply_one(&work, op))
            return NULL;
    return work.root;
}
