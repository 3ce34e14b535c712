/* kube_rules.c - answers SelfSubjectRulesReview: all that a user may do in a namespace, as rules.
 * They are complete for administrators and for users whose rights are by roles; what nodes and
 * drivers may depends on names and relations, so theirs are marked as incomplete. */
#include "access/access.h"
#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "serve/auth.h"
#include "serve/auth/auth_rules.h"
#include "serve/kube/kube_call.h"
#include "serve/wire/kube_body.h"

#define AUTHN "authentication.k8s.io"
#define AUTHZ "authorization.k8s.io"

typedef DV_VEC(struct dv_api_resource_rule) resource_rules;
typedef DV_VEC(struct dv_api_non_resource_rule) path_rules;

struct rules {
    resource_rules resources;
    path_rules paths;
    struct dv_arena *arena;
};

/* Copies words that a blank separates. */
static dv_str *words_of(const char *text, struct dv_arena *arena, size_t *n)
{
    dv_str rest = dv_str_from_c(text);
    DV_VEC(dv_str) words = {0};
    dv_str word;

    while (dv_str_split(&rest, ' ', &word))
        *dv_vec_add_in(&words, arena) = word;
    *n = words.n;
    return words.v;
}

static void add_resource(struct rules *rules, const char *verbs, const char *group,
                         const char *resources)
{
    struct dv_api_resource_rule *rule = dv_vec_add_in(&rules->resources, rules->arena);

    rule->verbs = words_of(verbs, rules->arena, &rule->n_verbs);
    rule->api_groups = DV_NEW(rules->arena, dv_str);
    rule->api_groups[0] = dv_str_from_c(group);
    rule->n_api_groups = 1;
    rule->resources = words_of(resources, rules->arena, &rule->n_resources);
}

static void add_paths(struct rules *rules, const char *verbs, const char *paths)
{
    struct dv_api_non_resource_rule *rule = dv_vec_add_in(&rules->paths, rules->arena);

    rule->verbs = words_of(verbs, rules->arena, &rule->n_verbs);
    rule->non_resource_urls = words_of(paths, rules->arena, &rule->n_non_resource_urls);
}

/* Adds what the driver's token may read in addition. */
static void add_also(struct rules *rules, const struct dv_api_user_info *user)
{
    static const struct {
        unsigned verb;
        dv_str name;
    } verbs[] = {
        {DV_MAY_GET,   DV_STR_INIT("get")  },
        {DV_MAY_LIST,  DV_STR_INIT("list") },
        {DV_MAY_WATCH, DV_STR_INIT("watch")},
    };
    struct dv_strs texts = dv_auth_extra(user, DV_STR(DV_EXTRA_ALSO));

    for (size_t i = 0; i < texts.n; i++) {
        struct dv_api_resource_rule rule = {0};
        struct dv_auth_also also;
        struct dv_err err;

        if (!dv_auth_also_parse(texts.v[i], &also, &err))
            continue; /* an addition that cannot be read gives nothing */
        rule.verbs = DV_NEW_ARRAY(rules->arena, dv_str, DV_COUNT(verbs));
        for (size_t k = 0; k < DV_COUNT(verbs); k++)
            if (also.verbs & verbs[k].verb)
                rule.verbs[rule.n_verbs++] = verbs[k].name;
        rule.api_groups = DV_NEW(rules->arena, dv_str);
        rule.api_groups[0] = also.group;
        rule.resources = DV_NEW(rules->arena, dv_str);
        rule.resources[0] = dv_str_printf(rules->arena, "%.*s%s%.*s", DV_FMT(also.resource),
                                          also.subresource.n ? "/" : "", DV_FMT(also.subresource));
        rule.n_api_groups = rule.n_resources = 1;
        *dv_vec_add_in(&rules->resources, rules->arena) = rule;
    }
}

/* Adds the rules of the user's roles, in their order. */
static void add_by_roles(struct rules *rules, const struct dv_kube_call *call, dv_str namespace)
{
    size_t n;
    const struct dv_api_policy_rule *found =
        dv_access_rules(call->kube->access, &call->user, namespace, call->arena, &n);

    for (size_t i = 0; i < n; i++) {
        if (found[i].n_resources > 0)
            *dv_vec_add_in(&rules->resources, rules->arena) =
                (struct dv_api_resource_rule){.verbs = found[i].verbs,
                                              .n_verbs = found[i].n_verbs,
                                              .api_groups = found[i].api_groups,
                                              .n_api_groups = found[i].n_api_groups,
                                              .resources = found[i].resources,
                                              .n_resources = found[i].n_resources,
                                              .resource_names = found[i].resource_names,
                                              .n_resource_names = found[i].n_resource_names};
        if (found[i].n_non_resource_urls > 0)
            *dv_vec_add_in(&rules->paths, rules->arena) = (struct dv_api_non_resource_rule){
                .verbs = found[i].verbs,
                .n_verbs = found[i].n_verbs,
                .non_resource_urls = found[i].non_resource_urls,
                .n_non_resource_urls = found[i].n_non_resource_urls};
    }
}

static void find_rules(const struct dv_kube_call *call, dv_str namespace, struct rules *rules)
{
    dv_str node, driver;
    enum dv_auth_scope scope = dv_auth_scope(&call->user, &node, &driver);

    if (scope == DV_SCOPE_ADMIN) {
        add_resource(rules, "*", "*", "*");
        add_paths(rules, "*", "*");
        return;
    }
    if (dv_auth_is_by_roles(&call->user)) {
        add_by_roles(rules, call, namespace);
        return;
    }
    add_resource(rules, "create", AUTHZ, "selfsubjectaccessreviews selfsubjectrulesreviews");
    add_resource(rules, "create", AUTHN, "selfsubjectreviews");
    if (scope == DV_SCOPE_DRIVER)
        add_also(rules, &call->user);
    add_paths(rules, "get",
              "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version");
}

void dv_kube_review_rules(struct dv_kube_call *call)
{
    const struct dv_body_kind kind = {DV_STR("SelfSubjectRulesReview"), DV_STR(AUTHZ), DV_STR("v1"),
                                      &dv_message_self_subject_rules_review};
    struct rules rules = {.arena = call->arena};
    struct dv_api_self_subject_rules_review *review;
    dv_str node, driver;
    void *value;

    if (!dv_kube_read_review(call, &kind, &value))
        return;
    review = value;
    if (!review->spec.namespace.n) {
        dv_kube_reply_status(call, dv_status_bad_request(call->arena, "no namespace on request"));
        return;
    }
    find_rules(call, review->spec.namespace, &rules);
    review->status = (struct dv_api_subject_rules_review_status){
        .resource_rules = rules.resources.v ? rules.resources.v
                                            : DV_NEW(call->arena, struct dv_api_resource_rule),
        .n_resource_rules = rules.resources.n,
        .non_resource_rules =
            rules.paths.v ? rules.paths.v : DV_NEW(call->arena, struct dv_api_non_resource_rule),
        .n_non_resource_rules = rules.paths.n,
        .incomplete = dv_auth_scope(&call->user, &node, &driver) != DV_SCOPE_ADMIN &&
                      !dv_auth_is_by_roles(&call->user)};
    dv_kube_reply_review(call, &kind, review);
}
