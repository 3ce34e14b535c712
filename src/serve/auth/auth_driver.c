/* auth_driver.c - decides what a driver may ask for: its own slices, the claims that are allocated
 * to it, and what its token may read in addition. What it may write into them is in
 * auth_write.c. */
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"

/* What a token can be widened by: reading only, and nothing secret. */
#define ALSO_VERBS "get, list and watch"
/* How many such additions a token may have; a driver's chart needs a handful. */
#define ALSO_MAX 32u
#define ALSO_BYTES_MAX 256u

/* ---- its own ---- */

static bool is_own(const struct dv_auth_question *q, const char *what)
{
    if (q->relations && q->request->name.n &&
        q->relations->is_of_driver(q->relations->ctx, q->node, q->driver, q->request))
        return true;
    return dv_auth_refuse(q, q->node.n
                                 ? dv_str_printf(q->arena,
                                                 "this %s is not of driver \"%.*s\" on node "
                                                 "\"%.*s\"",
                                                 what, DV_FMT(q->driver), DV_FMT(q->node))
                                 : dv_str_printf(q->arena, "this %s is not of driver \"%.*s\"",
                                                 what, DV_FMT(q->driver)));
}

static bool may_use_slice(const struct dv_auth_question *q)
{
    if (q->request->subresource.n)
        return false;
    if (q->verb == DV_MAY_CREATE)
        return true;
    if (!(q->verb & DV_MAY_MANY))
        return is_own(q, "slice");
    if (!dv_auth_demands(q, "spec.driver", q->driver))
        return dv_auth_refuse(q, dv_str_printf(q->arena,
                                               "can only list/watch/deletecollection "
                                               "resourceslices with the field selector "
                                               "spec.driver=%.*s",
                                               DV_FMT(q->driver)));
    return !q->node.n || dv_auth_demands(q, "spec.nodeName", q->node) ||
           dv_auth_refuse(q, dv_str_printf(q->arena,
                                           "can only list/watch/deletecollection resourceslices "
                                           "with the field selector spec.nodeName=%.*s",
                                           DV_FMT(q->node)));
}

/* Decides on resourceclaims/driver, which is not served: its verbs stand for changes of
 * status.devices, and its name is the driver's. */
static bool may_change_devices(const struct dv_auth_question *q)
{
    dv_str verb = q->request->verb;

    if (!dv_str_eq(q->request->name, q->driver))
        return false;
    if (dv_str_eq(verb, DV_STR("associated-node:update")) ||
        dv_str_eq(verb, DV_STR("associated-node:patch")))
        return q->node.n > 0;
    return (dv_str_eq(verb, DV_STR("arbitrary-node:update")) ||
            dv_str_eq(verb, DV_STR("arbitrary-node:patch"))) &&
           !q->node.n;
}

static bool may_use_claim(const struct dv_auth_question *q)
{
    if (dv_str_eq(q->request->subresource, DV_STR("driver")))
        return may_change_devices(q);
    if (dv_str_eq(q->request->subresource, DV_STR("status")))
        return q->verb & DV_MAY_CHANGE;
    return !q->request->subresource.n && q->verb == DV_MAY_GET && is_own(q, "claim");
}

static bool may_use_node(const struct dv_auth_question *q)
{
    if (q->verb != DV_MAY_GET || q->request->subresource.n)
        return false;
    return (q->node.n && dv_str_eq(q->request->name, q->node)) ||
           dv_auth_refuse(q, DV_STR("a driver can only read the node that its token is for"));
}

static bool may_use_event(const struct dv_auth_question *q)
{
    return !q->request->subresource.n && (q->verb & (DV_MAY_CREATE | DV_MAY_CHANGE));
}

static bool may_use_class(const struct dv_auth_question *q)
{
    return !q->request->subresource.n && (q->verb & DV_MAY_READ);
}

static const struct {
    dv_str group;
    dv_str resource;
    bool (*decide)(const struct dv_auth_question *q);
} kinds[] = {
    {{0},                            DV_STR_INIT("nodes"),          may_use_node },
    {{0},                            DV_STR_INIT("events"),         may_use_event},
    {DV_STR_INIT("events.k8s.io"),   DV_STR_INIT("events"),         may_use_event},
    {DV_STR_INIT("resource.k8s.io"), DV_STR_INIT("deviceclasses"),  may_use_class},
    {DV_STR_INIT("resource.k8s.io"), DV_STR_INIT("resourceclaims"), may_use_claim},
    {DV_STR_INIT("resource.k8s.io"), DV_STR_INIT("resourceslices"), may_use_slice},
};

/* ---- what else it was given ---- */

static bool read_verbs(dv_str text, dv_str words, unsigned *verbs, struct dv_err *err)
{
    dv_str rest = words;
    dv_str word;

    *verbs = 0;
    while (rest.n && dv_str_split(&rest, ',', &word)) {
        unsigned verb = dv_auth_verb(dv_str_trim(word));

        if (!(verb & DV_MAY_READ))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "\"%.*s\": a token can be given " ALSO_VERBS ", not \"%.*s\"",
                           DV_FMT(text), DV_FMT(dv_str_trim(word)));
        *verbs |= verb;
    }
    return *verbs != 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\": no verbs (" ALSO_VERBS ")", DV_FMT(text));
}

/* Finds the kind of "pods", or of "events.events.k8s.io" where several groups have that
 * resource. */
static const struct dv_kind *find_kind(dv_str name, dv_str *group)
{
    size_t dot = dv_str_find_char(name, '.');
    dv_str plural = dv_str_slice(name, 0, dot);
    bool has_group = dot < name.n;

    *group = has_group ? dv_str_slice(name, dot + 1, name.n) : DV_STR_NONE;
    for (size_t i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)i);

        if (!dv_str_eq(kind->plural, plural))
            continue;
        for (size_t k = 0; k < kind->n_versions; k++)
            if (!has_group || dv_str_eq(kind->versions[k].group, *group)) {
                *group = kind->versions[k].group;
                return kind;
            }
    }
    return NULL;
}

bool dv_auth_also_parse(dv_str text, struct dv_auth_also *also, struct dv_err *err)
{
    size_t colon = dv_str_find_char(text, ':');
    dv_str name = dv_str_trim(dv_str_slice(text, 0, colon));
    size_t slash = dv_str_find_char(name, '/');
    const struct dv_kind *kind;

    *also = (struct dv_auth_also){0};
    if (text.n > ALSO_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a rule of %zu bytes; up to %u are kept", text.n,
                       ALSO_BYTES_MAX);
    if (colon == text.n || !name.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\" is not RESOURCE: VERBS, as in \"pods: get,list,watch\"",
                       DV_FMT(text));
    kind = find_kind(dv_str_slice(name, 0, slash), &also->group);
    if (!kind)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "\"%.*s\": no resource \"%.*s\" is served; say its plural, with the group "
                       "behind a dot where it has one",
                       DV_FMT(text), DV_FMT(dv_str_slice(name, 0, slash)));
    if (kind->id == DV_KIND_SECRET)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\": no driver's token reads secrets",
                       DV_FMT(text));
    also->resource = kind->plural;
    if (slash < name.n)
        also->subresource = dv_str_slice(name, slash + 1, name.n);
    if (also->subresource.n &&
        (!dv_str_eq(also->subresource, DV_STR("status")) || !kind->has_status))
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\": %.*s have no \"%.*s\" that can be read",
                       DV_FMT(text), DV_FMT(kind->plural), DV_FMT(also->subresource));
    return read_verbs(text, dv_str_slice(text, colon + 1, text.n), &also->verbs, err);
}

bool dv_auth_widen(struct dv_api_user_info *user, const dv_str *also, size_t n_also,
                   struct dv_arena *arena, struct dv_err *err)
{
    struct dv_auth_also parsed;

    if (n_also > ALSO_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT, "a token can be widened by %u resources, not %zu",
                       ALSO_MAX, n_also);
    for (size_t i = 0; i < n_also; i++)
        if (!dv_auth_also_parse(also[i], &parsed, err))
            return false;
    dv_auth_add_extra(user, DV_STR(DV_EXTRA_ALSO), also, n_also, arena);
    return true;
}

/* Whether the token was given that. An addition that cannot be read, as of a kind that an older
 * version served, gives nothing. */
static bool is_given(const struct dv_auth_question *q)
{
    struct dv_strs rules = dv_auth_extra(q->user, DV_STR(DV_EXTRA_ALSO));

    for (size_t i = 0; i < rules.n; i++) {
        struct dv_auth_also also;
        struct dv_err err;

        if (dv_auth_also_parse(rules.v[i], &also, &err) && (also.verbs & q->verb) &&
            dv_auth_is_about(q, also.group, also.resource) &&
            dv_str_eq(also.subresource, q->request->subresource))
            return true;
    }
    return false;
}

bool dv_auth_decide_driver(const struct dv_auth_question *q)
{
    if (is_given(q))
        return true;
    for (size_t i = 0; i < DV_COUNT(kinds); i++)
        if (dv_auth_is_about(q, kinds[i].group, kinds[i].resource))
            return kinds[i].decide(q);
    return false;
}
