/* constraint.c - the constraints of a claim: an attribute whose value all its devices must have in
 * common (matchAttribute), or of which no two may have the same (distinctAttribute). Each is told
 * of every device that is taken and given back. */
#include <string.h>

#include "alloc/inventory.h"
#include "alloc/search.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

/* ---- reading ---- */

static bool names(const struct dv_api_device_constraint *api, dv_str name)
{
    for (size_t i = 0; i < api->n_requests; i++)
        if (dv_str_eq(api->requests[i], name))
            return true;
    return api->n_requests == 0;
}

bool dv_constraint_read(struct dv_alloc_search *search, struct dv_alloc_task *task,
                        const struct dv_api_device_constraint *api,
                        struct dv_alloc_constraint *constraint)
{
    size_t slash;

    constraint->api = api;
    if (api->match_attribute.p) {
        constraint->attribute = api->match_attribute;
    } else if (api->distinct_attribute.p) {
        constraint->attribute = api->distinct_attribute;
        constraint->is_distinct = true;
    } else {
        return dv_fail(search->err, DV_INVALID_ARGUMENT,
                       "claim %.*s/%.*s: empty constraint (unsupported constraint type?)",
                       DV_FMT(task->claim->metadata.namespace), DV_FMT(task->claim->metadata.name));
    }
    slash = dv_str_find_char(constraint->attribute, '/');
    constraint->domain = dv_str_slice(constraint->attribute, 0, slash);
    constraint->id = dv_str_slice(constraint->attribute, slash + 1, constraint->attribute.n);
    constraint->applies = DV_NEW_ARRAY(search->arena, bool, task->first_want[task->n_asks]);
    constraint->seen = DV_NEW_ARRAY(search->arena, struct dv_alloc_values, task->n_asks);
    for (size_t i = 0; i < task->n_asks; i++)
        for (size_t j = 0; j < task->asks[i].n_wants; j++)
            constraint->applies[task->first_want[i] + j] =
                names(api, task->asks[i].api->name) || names(api, task->asks[i].wants[j].name);
    return true;
}

/* ---- values ---- */

static const struct dv_api_device_attribute *find(const struct dv_api_device *api, dv_str name)
{
    for (size_t i = 0; i < api->n_attributes; i++)
        if (dv_str_eq(api->attributes[i].key, name))
            return &api->attributes[i].value;
    return NULL;
}

static const struct dv_api_device_attribute *
attribute_of(const struct dv_alloc_constraint *constraint, const struct dv_alloc_device *device)
{
    const struct dv_api_device_attribute *found = find(device->api, constraint->attribute);

    if (!found && dv_str_eq(constraint->domain, device->slice->pool->driver))
        found = find(device->api, constraint->id);
    return found;
}

static struct dv_alloc_values lists_of(const struct dv_api_device_attribute *api)
{
    if (api->ints)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_INT, .n = api->n_ints, .ints = api->ints};
    if (api->bools)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_BOOL, .n = api->n_bools, .bools = api->bools};
    if (api->strings)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_STRING, .n = api->n_strings, .texts = api->strings};
    if (api->versions)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_VERSION, .n = api->n_versions, .texts = api->versions};
    return (struct dv_alloc_values){0};
}

static struct dv_alloc_values values_of(const struct dv_api_device_attribute *api, bool takes_lists)
{
    struct dv_alloc_values values = {0};

    if (takes_lists)
        values = lists_of(api);
    if (values.kind != DV_ALLOC_VALUE_NONE)
        return values;
    if (api->string.p)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_STRING, .n = 1, .texts = &api->string};
    if (api->version.p)
        return (struct dv_alloc_values){
            .kind = DV_ALLOC_VALUE_VERSION, .n = 1, .texts = &api->version};
    if (api->bool_)
        return (struct dv_alloc_values){.kind = DV_ALLOC_VALUE_BOOL, .n = 1, .bools = api->bool_};
    if (api->int_)
        return (struct dv_alloc_values){.kind = DV_ALLOC_VALUE_INT, .n = 1, .ints = api->int_};
    return values;
}

static bool is_same(const struct dv_alloc_values *a, size_t i, const struct dv_alloc_values *b,
                    size_t j)
{
    switch (a->kind) {
    case DV_ALLOC_VALUE_INT:
        return a->ints[i] == b->ints[j];
    case DV_ALLOC_VALUE_BOOL:
        return a->bools[i] == b->bools[j];
    case DV_ALLOC_VALUE_STRING:
    case DV_ALLOC_VALUE_VERSION:
        return dv_str_eq(a->texts[i], b->texts[j]);
    case DV_ALLOC_VALUE_NONE:
        break;
    }
    return false;
}

static bool has(const struct dv_alloc_values *values, const struct dv_alloc_values *of, size_t i)
{
    for (size_t j = 0; j < values->n; j++)
        if (is_same(values, j, of, i))
            return true;
    return false;
}

static bool overlap(const struct dv_alloc_values *a, const struct dv_alloc_values *b)
{
    if (a->kind != b->kind)
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (has(a, b, i))
            return true;
    return false;
}

/* The values that `a` and `b` have in common; there is at least one. */
static struct dv_alloc_values common_of(const struct dv_alloc_values *a,
                                        const struct dv_alloc_values *b, struct dv_arena *arena)
{
    struct dv_alloc_values common = {.kind = a->kind};
    int64_t *ints = NULL;
    bool *bools = NULL;
    dv_str *texts = NULL;

    if (a->n == 1)
        return *a;
    if (a->kind == DV_ALLOC_VALUE_INT)
        common.ints = ints = DV_NEW_ARRAY(arena, int64_t, a->n);
    else if (a->kind == DV_ALLOC_VALUE_BOOL)
        common.bools = bools = DV_NEW_ARRAY(arena, bool, a->n);
    else
        common.texts = texts = DV_NEW_ARRAY(arena, dv_str, a->n);
    for (size_t i = 0; i < a->n; i++) {
        if (!has(b, a, i))
            continue;
        if (ints)
            ints[common.n] = a->ints[i];
        else if (bools)
            bools[common.n] = a->bools[i];
        else if (texts)
            texts[common.n] = a->texts[i];
        common.n++;
    }
    return common;
}

/* ---- adding and removing ---- */

static bool clashes(const struct dv_alloc_constraint *constraint, const struct dv_alloc_task *task,
                    const struct dv_alloc_values *values)
{
    for (size_t i = 0; i < task->n_asks; i++)
        if (overlap(&constraint->seen[i], values))
            return true;
    return false;
}

static bool is_allowed(const struct dv_alloc_search *search,
                       const struct dv_alloc_constraint *constraint,
                       const struct dv_alloc_task *task, const struct dv_alloc_device *device,
                       struct dv_alloc_values *values)
{
    const struct dv_api_device_attribute *attribute = attribute_of(constraint, device);

    if (!attribute)
        return false;
    *values = values_of(attribute, search->inventory->features.list_attributes);
    if (constraint->n_taken == 0)
        return true;
    if (constraint->is_distinct)
        return !clashes(constraint, task, values);
    return overlap(&constraint->common, values);
}

bool dv_constraint_allows(const struct dv_alloc_search *search,
                          const struct dv_alloc_constraint *constraint,
                          const struct dv_alloc_task *task, size_t ask, size_t want,
                          const struct dv_alloc_device *device)
{
    struct dv_alloc_values values;

    return !constraint->applies[task->first_want[ask] + want] ||
           is_allowed(search, constraint, task, device, &values);
}

bool dv_constraint_add(struct dv_alloc_search *search, struct dv_alloc_constraint *constraint,
                       const struct dv_alloc_task *task, size_t ask, size_t want,
                       const struct dv_alloc_device *device)
{
    struct dv_alloc_values values;

    if (!constraint->applies[task->first_want[ask] + want])
        return true;
    if (!is_allowed(search, constraint, task, device, &values))
        return false;
    if (constraint->is_distinct)
        constraint->seen[ask] = values;
    else if (constraint->n_taken == 0)
        constraint->common = values;
    else
        /* It is not widened again when the device is given back. The reference does not either, and
         * its first solution depends on it. */
        constraint->common = common_of(&constraint->common, &values, search->arena);
    constraint->n_taken++;
    return true;
}

void dv_constraint_remove(struct dv_alloc_constraint *constraint, const struct dv_alloc_task *task,
                          size_t ask, size_t want)
{
    if (!constraint->applies[task->first_want[ask] + want])
        return;
    constraint->n_taken--;
    /* Only the last device of a request is remembered, and after it was given back none. That is
     * how the reference behaves, and its first solution depends on it. */
    if (constraint->is_distinct)
        constraint->seen[ask] = (struct dv_alloc_values){0};
}

bool dv_constraint_clashes(const struct dv_alloc_search *search,
                           const struct dv_alloc_constraint *constraint,
                           const struct dv_alloc_device *a, const struct dv_alloc_device *b)
{
    bool takes_lists = search->inventory->features.list_attributes;
    const struct dv_api_device_attribute *left = attribute_of(constraint, a);
    const struct dv_api_device_attribute *right = attribute_of(constraint, b);
    struct dv_alloc_values of_left;
    struct dv_alloc_values of_right;

    if (!left || !right)
        return false;
    of_left = values_of(left, takes_lists);
    of_right = values_of(right, takes_lists);
    return overlap(&of_left, &of_right);
}

void dv_constraint_number(const struct dv_alloc_search *search,
                          struct dv_alloc_constraint *constraint)
{
    const struct dv_alloc_node_view *view = search->view;
    struct dv_alloc_values *values; /* the values that have been given numbers */

    if (constraint->value_of)
        return;
    constraint->value_of = DV_NEW_ARRAY(search->arena, uint32_t, view->n_places);
    values = DV_NEW_ARRAY(search->arena, struct dv_alloc_values, view->n_places);
    for (size_t i = 0; i < view->n_places; i++) {
        const struct dv_api_device_attribute *attribute =
            attribute_of(constraint, view->places[i].device);
        struct dv_alloc_values own;
        uint32_t at = 0;

        if (!attribute)
            continue;
        own = values_of(attribute, false);
        constraint->has_unknown = constraint->has_unknown || own.kind == DV_ALLOC_VALUE_NONE;
        while (at < constraint->n_values && !overlap(&values[at], &own))
            at++;
        if (at == constraint->n_values)
            /* A value that cannot be compared equals no other, and gets a number of its own. */
            values[constraint->n_values++] = own;
        constraint->value_of[i] = at + 1;
    }
}

dv_str dv_constraint_value(const struct dv_alloc_constraint *constraint,
                           const struct dv_alloc_device *device, struct dv_arena *arena)
{
    const struct dv_api_device_attribute *attribute = attribute_of(constraint, device);
    struct dv_alloc_values values;
    dv_str text = {0};

    if (!attribute)
        return DV_STR_NONE;
    values = values_of(attribute, true);
    for (size_t i = 0; i < values.n; i++) {
        const char *comma = i ? ", " : "";

        if (values.kind == DV_ALLOC_VALUE_INT)
            text =
                dv_str_printf(arena, "%.*s%s%lld", DV_FMT(text), comma, (long long)values.ints[i]);
        else if (values.kind == DV_ALLOC_VALUE_BOOL)
            text = dv_str_printf(arena, "%.*s%s%s", DV_FMT(text), comma,
                                 values.bools[i] ? "true" : "false");
        else
            text = dv_str_printf(arena, "%.*s%s\"%.*s\"", DV_FMT(text), comma,
                                 DV_FMT(values.texts[i]));
    }
    return text;
}
