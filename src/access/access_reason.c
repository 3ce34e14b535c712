/* access_reason.c - what is told about decisions: which binding allowed it, which roles are
 * missing, and all rules that a user has. */
#include "access/access.h"

#include <stdlib.h>

#include "access/access_rule.h"
#include "base/buf.h"
#include "base/vec.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX (16u * 1024u)

static void print_allowed(const struct dv_access_grant *grant, struct dv_buf *buf)
{
    const struct dv_api_role_binding *binding = grant->binding->value;
    const struct dv_api_subject *subject = &binding->subjects[grant->subject];
    dv_str namespace = binding->metadata.namespace;

    dv_buf_printf(buf, "RBAC: allowed by %.*s \"%.*s%s%.*s\" of %.*s \"%.*s\" to %.*s \"%.*s",
                  DV_FMT(grant->binding->kind->name), DV_FMT(binding->metadata.name),
                  namespace.n ? "/" : "", DV_FMT(namespace), DV_FMT(binding->role_ref.kind),
                  DV_FMT(binding->role_ref.name), DV_FMT(subject->kind), DV_FMT(subject->name));
    if (dv_str_eq(subject->kind, DV_STR("ServiceAccount")))
        dv_buf_printf(buf, "/%.*s", DV_FMT(subject->namespace.n ? subject->namespace : namespace));
    dv_buf_add_char(buf, '"');
}

struct missing {
    DV_VEC(dv_str) texts;
    struct dv_arena *arena;
};

static bool add_missing(void *ctx, const struct dv_access_grant *grant)
{
    const struct dv_api_role_binding *binding = grant->binding->value;
    struct missing *missing = ctx;
    bool is_cluster = dv_str_eq(binding->role_ref.kind, DV_STR("ClusterRole"));
    dv_str text;

    if (grant->role->object)
        return true;
    text = dv_str_printf(missing->arena, "%s." DV_RBAC_GROUP " \"%.*s\" not found",
                         is_cluster ? "clusterrole" : "role", DV_FMT(binding->role_ref.name));
    if (!dv_access_has(missing->texts.v, missing->texts.n, text))
        *dv_vec_add_in(&missing->texts, missing->arena) = text;
    return true;
}

static void print_missing(const struct missing *missing, struct dv_buf *buf)
{
    dv_buf_add_c(buf, missing->texts.n > 1 ? "RBAC: [" : "RBAC: ");
    for (size_t i = 0; i < missing->texts.n; i++) {
        dv_buf_add_c(buf, i > 0 ? ", " : "");
        dv_buf_add(buf, missing->texts.v[i]);
    }
    dv_buf_add_c(buf, missing->texts.n > 1 ? "]" : "");
}

dv_str dv_access_reason(const struct dv_access *access, const struct dv_api_user_info *user,
                        const struct dv_access_request *request, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_access_grant *grant = dv_access_find_grant(access, user, request);
    struct missing missing = {.arena = arena};

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (grant) {
        print_allowed(grant, &buf);
    } else {
        (void)dv_access_each(access, user, request->path.n ? DV_STR_NONE : request->namespace,
                             add_missing, &missing);
        if (missing.texts.n > 0)
            print_missing(&missing, &buf);
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}

struct rules {
    DV_VEC(struct dv_api_policy_rule) all;
    struct dv_arena *arena;
};

static bool add_rules(void *ctx, const struct dv_access_grant *grant)
{
    struct rules *rules = ctx;
    const struct dv_api_cluster_role *role =
        grant->role->object ? grant->role->object->value : NULL;

    for (size_t i = 0; role && i < role->n_rules; i++)
        *dv_vec_add_in(&rules->all, rules->arena) = role->rules[i];
    return true;
}

struct dv_api_policy_rule *dv_access_rules(const struct dv_access *access,
                                           const struct dv_api_user_info *user, dv_str namespace,
                                           struct dv_arena *arena, size_t *n)
{
    struct rules rules = {.arena = arena};

    (void)dv_access_each(access, user, namespace, add_rules, &rules);
    *n = rules.all.n;
    return rules.all.v;
}
