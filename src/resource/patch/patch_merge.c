/* patch_merge.c - merge patch (RFC 7386). Without recursion: how deep a patch goes is its sender's
 * choice.
 *
 * In one thing it goes beyond the RFC, as the reference does: members that are null are left out of
 * objects inside of lists, too. */
#include "resource/patch.h"

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "json/json.h"

/* An object or list of the result that is still to be filled. */
struct step {
    const struct dv_json *doc; /* NULL or no object: nothing was there */
    const struct dv_json *patch;
    struct dv_json *out;
};

struct steps {
    struct step *v;
    size_t n;
    size_t size;
};

/* The value that `doc` (may be NULL) becomes under `patch`; a container is filled later. */
static struct dv_json *start_value(const struct dv_json *doc, const struct dv_json *patch,
                                   struct steps *steps, struct dv_arena *arena)
{
    struct dv_json *made;

    if (dv_json_kind(patch) < DV_JSON_ARRAY)
        return dv_json_copy(patch, arena);
    made = dv_json_is(patch, DV_JSON_OBJECT) ? dv_json_new_object(arena) : dv_json_new_array(arena);
    *dv_vec_add(steps) = (struct step){doc, patch, made};
    return made;
}

static void merge_member(const struct dv_json *doc, const struct dv_json *patch,
                         struct dv_json *out, struct steps *steps, struct dv_arena *arena)
{
    if (!dv_json_is(patch, DV_JSON_NULL))
        dv_json_set(out, dv_json_key(patch), start_value(doc, patch, steps, arena), arena);
}

static void copy_items(const struct step *step, struct steps *steps, struct dv_arena *arena)
{
    for (const struct dv_json *item = dv_json_first(step->patch); item; item = dv_json_next(item))
        dv_json_append(step->out, start_value(NULL, item, steps, arena));
}

static void merge_object(const struct step *step, struct steps *steps, struct dv_arena *arena)
{
    const struct dv_json *doc = dv_json_is(step->doc, DV_JSON_OBJECT) ? step->doc : NULL;

    for (const struct dv_json *old = dv_json_first(doc); old; old = dv_json_next(old)) {
        const struct dv_json *change = dv_json_get(step->patch, dv_json_key(old));

        if (change)
            merge_member(old, change, step->out, steps, arena);
        else
            dv_json_set(step->out, dv_json_key(old), dv_json_copy(old, arena), arena);
    }
    for (const struct dv_json *change = dv_json_first(step->patch); change;
         change = dv_json_next(change))
        if (!dv_json_get(doc, dv_json_key(change)))
            merge_member(NULL, change, step->out, steps, arena);
}

struct dv_json *dv_patch_merge(const struct dv_json *doc, const struct dv_json *patch,
                               struct dv_arena *arena)
{
    struct steps steps = {0};
    struct dv_json *root;

    root = start_value(doc, patch, &steps, arena);
    while (steps.n > 0) {
        struct step step = steps.v[--steps.n];

        if (dv_json_is(step.patch, DV_JSON_OBJECT))
            merge_object(&step, &steps, arena);
        else
            copy_items(&step, &steps, arena);
    }
    dv_vec_fini(&steps);
    return root;
}

bool dv_patch_merge_check(const struct dv_json *patch, struct dv_err *err)
{
    static const char *const names[] = {"null", "bool", "number", "string", "array", "object"};

    if (dv_json_is(patch, DV_JSON_OBJECT))
        return true;
    if (dv_json_is(patch, DV_JSON_NULL))
        return dv_fail(err, DV_INVALID_ARGUMENT, "Invalid JSON Patch");
    return dv_fail(err, DV_INVALID_ARGUMENT,
                   "error decoding patch: json: cannot unmarshal %s into Go value of type "
                   "map[string]interface {}",
                   names[dv_json_kind(patch)]);
}
