/* access_grant.c - who may give rights: a user's own rules have to cover all that a role or a
 * binding gives, unless it may `escalate` or `bind`.
 *
 * What is given is taken apart into atoms, of one group, resource, verb and name each; an atom is
 * covered when one rule of the user covers it. What is missing is told as the reference does. */
#include "access/access.h"

#include <stdint.h>
#include <stdlib.h>

#include "access/access_rule.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/visible.h"
#include "resource/resource.h"

/* An atom takes a third of a microsecond; a rule of a few kilobytes can stand for millions. */
#define N_ATOMS_MAX 20000u
/* So many lines of what is missing are enough: each costs more than the look at its atom. */
#define N_LINES_MAX 500u
#define TEXT_BYTES_MAX (64u * 1024u)
#define GROUP_ADMINS "system:masters"

/* What is missing for one group, resource and name. */
struct line {
    dv_str group;
    dv_str resource;
    const dv_str *name; /* NULL: all names */
    DV_VEC(dv_str) verbs;
};

/* One check. */
struct check {
    const struct dv_access *access;
    const struct dv_api_user_info *user;
    dv_str namespace;
    dv_str plural; /* of what is written */
    struct dv_arena *arena;
    DV_VEC(dv_str) lines; /* printed */
    DV_VEC(dv_str) gone;  /* roles that bindings of the user name, and that are not there */
    struct dv_map merged; /* struct line, by group, resource and name */
    struct dv_access_question question;
};

/* ---- what is missing ---- */

static void print_list(const char *name, const dv_str *texts, size_t n, struct dv_buf *buf)
{
    if (n == 0)
        return;
    dv_buf_printf(buf, "%s%s:[", buf->n > 1 ? ", " : "", name);
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(buf, i > 0 ? " " : "");
        dv_go_quote(texts[i], buf);
    }
    dv_buf_add_char(buf, ']');
}

static void add_url_line(struct check *check, dv_str url, dv_str verb)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_char(&buf, '{');
    print_list("NonResourceURLs", &url, 1, &buf);
    print_list("Verbs", &verb, 1, &buf);
    dv_buf_add_char(&buf, '}');
    *dv_vec_add_in(&check->lines, check->arena) = dv_str_copy(dv_buf_str(&buf), check->arena);
}

static void add_missing(struct check *check, dv_str group, dv_str resource, const dv_str *name,
                        dv_str verb)
{
    dv_str key = dv_str_printf(check->arena, "%zu %.*s%zu %.*s%.*s", group.n, DV_FMT(group),
                               resource.n, DV_FMT(resource), DV_FMT(name ? *name : DV_STR("")));
    struct line *line;

    if (name) /* no name is not the same as an empty one */
        key = dv_str_printf(check->arena, "=%.*s", DV_FMT(key));
    line = dv_map_get(&check->merged, key);
    if (!line) {
        line = DV_NEW(check->arena, struct line);
        line->group = group;
        line->resource = resource;
        line->name = name;
        (void)dv_map_set(&check->merged, key, line);
    }
    *dv_vec_add_in(&line->verbs, check->arena) = verb;
}

static void print_lines(struct check *check)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&check->merged, &at));) {
        DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
        const struct line *line = entry->value;

        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_buf_add_char(&buf, '{');
        print_list("APIGroups", &line->group, 1, &buf);
        print_list("Resources", &line->resource, 1, &buf);
        print_list("ResourceNames", line->name, line->name ? 1 : 0, &buf);
        print_list("Verbs", line->verbs.v, line->verbs.n, &buf);
        dv_buf_add_char(&buf, '}');
        *dv_vec_add_in(&check->lines, check->arena) = dv_str_copy(dv_buf_str(&buf), check->arena);
    }
}

static bool add_gone(void *ctx, const struct dv_access_grant *grant)
{
    const struct dv_api_role_binding *binding = grant->binding->value;
    struct check *check = ctx;

    if (!grant->role->object &&
        !dv_access_has(check->gone.v, check->gone.n, binding->role_ref.name))
        *dv_vec_add_in(&check->gone, check->arena) = binding->role_ref.name;
    return true;
}

/* Prints which roles might have given the user what it lacks. The reference calls them by the name
 * of what is written. */
static void print_gone(struct check *check, struct dv_buf *buf)
{
    (void)dv_access_each(check->access, check->user, check->namespace, add_gone, check);
    if (check->gone.n == 0)
        return;
    dv_buf_add_c(buf, check->gone.n > 1 ? "; resolution errors: [[" : "; resolution errors: [");
    for (size_t i = 0; i < check->gone.n; i++)
        dv_buf_printf(buf, "%s%.*s." DV_RBAC_GROUP " \"%.*s\" not found", i > 0 ? ", " : "",
                      DV_FMT(check->plural), DV_FMT(check->gone.v[i]));
    dv_buf_add_c(buf, check->gone.n > 1 ? "]]" : "]");
}

static dv_str print_denial(struct check *check)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    print_lines(check);
    qsort(check->lines.v, check->lines.n, sizeof(check->lines.v[0]), dv_str_compare);
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "user ");
    dv_go_quote(check->user->username, &buf);
    dv_buf_add_c(&buf, " (groups=[");
    for (size_t i = 0; i < check->user->n_groups; i++) {
        dv_buf_add_c(&buf, i > 0 ? " " : "");
        dv_go_quote(check->user->groups[i], &buf);
    }
    dv_buf_add_c(&buf, "]) is attempting to grant RBAC permissions not currently held:");
    for (size_t i = 0; i < check->lines.n; i++)
        if (i == 0 || !dv_str_eq(check->lines.v[i], check->lines.v[i - 1]))
            dv_buf_printf(&buf, "\n%.*s", DV_FMT(check->lines.v[i]));
    if (check->lines.n >= N_LINES_MAX)
        dv_buf_add_c(&buf, "\nand more");
    print_gone(check, &buf);
    return dv_str_copy(dv_buf_str(&buf), check->arena);
}

/* ---- atoms ---- */

static size_t at_least_one(size_t n)
{
    return n > 0 ? n : 1;
}

/* Counts the atoms of the rules; more than N_ATOMS_MAX are not told apart. */
static size_t count_atoms(const struct dv_api_policy_rule *rules, size_t n_rules)
{
    uint64_t n = 0;

    for (size_t i = 0; i < n_rules && n <= N_ATOMS_MAX; i++) {
        const struct dv_api_policy_rule *rule = &rules[i];
        const size_t factors[] = {rule->n_api_groups, rule->n_resources, rule->n_verbs,
                                  at_least_one(rule->n_resource_names)};
        uint64_t product = 1;

        for (size_t k = 0; k < DV_COUNT(factors) && product <= N_ATOMS_MAX; k++)
            product *= factors[k] < N_ATOMS_MAX ? factors[k] : N_ATOMS_MAX + 1;
        n += product;
        product = (uint64_t)rule->n_non_resource_urls * rule->n_verbs;
        n += product < N_ATOMS_MAX ? product : N_ATOMS_MAX + 1;
    }
    return n < N_ATOMS_MAX + 1 ? (size_t)n : N_ATOMS_MAX + 1;
}

static bool is_enough(const struct check *check)
{
    return check->merged.n + check->lines.n >= N_LINES_MAX;
}

static void check_atom(struct check *check, dv_str group, dv_str resource, const dv_str *name,
                       dv_str verb)
{
    if (is_enough(check))
        return;
    dv_access_ask_atom(verb, group, resource, name, &check->question);
    if (!dv_access_covers(check->access, check->user, check->namespace, &check->question))
        add_missing(check, group, resource, name, verb);
}

static void check_rule(struct check *check, const struct dv_api_policy_rule *rule)
{
    for (size_t g = 0; g < rule->n_api_groups; g++)
        for (size_t r = 0; r < rule->n_resources; r++)
            for (size_t v = 0; v < rule->n_verbs; v++)
                for (size_t k = 0; k < at_least_one(rule->n_resource_names); k++)
                    check_atom(check, rule->api_groups[g], rule->resources[r],
                               rule->n_resource_names > 0 ? &rule->resource_names[k] : NULL,
                               rule->verbs[v]);
    for (size_t u = 0; u < rule->n_non_resource_urls; u++)
        for (size_t v = 0; v < rule->n_verbs; v++) {
            check->question = (struct dv_access_question){.verb = rule->verbs[v],
                                                          .path = rule->non_resource_urls[u]};
            if (!is_enough(check) &&
                !dv_access_covers(check->access, check->user, check->namespace, &check->question))
                add_url_line(check, rule->non_resource_urls[u], rule->verbs[v]);
        }
}

/* Whether the user has all these rights, in the namespace of the write. */
static bool has_rules(const struct dv_access *access, const struct dv_api_user_info *user,
                      const struct dv_access_write *write, const struct dv_api_policy_rule *rules,
                      size_t n_rules, struct dv_arena *arena, dv_str *reason)
{
    struct check check = {.access = access,
                          .user = user,
                          .namespace = write->namespace,
                          .plural = write->kind->plural,
                          .arena = arena};

    if (count_atoms(rules, n_rules) > N_ATOMS_MAX) {
        *reason = dv_str_printf(arena,
                                "the rules stand for more than %u combinations of group, resource, "
                                "verb and name, which only who may escalate can give",
                                N_ATOMS_MAX);
        return false;
    }
    dv_map_init(&check.merged);
    for (size_t i = 0; i < n_rules; i++)
        check_rule(&check, &rules[i]);
    if (check.merged.n + check.lines.n > 0)
        *reason = print_denial(&check);
    dv_map_fini(&check.merged);
    return check.lines.n == 0;
}

/* ---- writes ---- */

/* Whether nothing is changed but what the collector of garbage needs to change. */
static bool is_for_collector(const struct dv_access_write *write, struct dv_arena *arena)
{
    const struct dv_message *message = write->kind->versions[0].message;
    struct dv_api_object_meta *meta = dv_arena_alloc(arena, message->size, message->align);
    const struct dv_api_object_meta *old = write->old;

    if (!old)
        return false;
    dv_message_copy(message, write->value, arena, meta);
    meta->owner_references = old->owner_references;
    meta->n_owner_references = old->n_owner_references;
    meta->finalizers = old->finalizers;
    meta->n_finalizers = old->n_finalizers;
    meta->managed_fields = old->managed_fields;
    meta->n_managed_fields = old->n_managed_fields;
    return dv_message_eq(message, meta, old);
}

static bool check_role(const struct dv_access *access, const struct dv_api_user_info *user,
                       const struct dv_access_write *write, struct dv_arena *arena, dv_str *reason)
{
    dv_str any = DV_STR("*");
    const struct dv_api_policy_rule all[] = {
        {.verbs = &any,
         .n_verbs = 1,
         .api_groups = &any,
         .n_api_groups = 1,
         .resources = &any,
         .n_resources = 1},
        {.verbs = &any, .n_verbs = 1, .non_resource_urls = &any, .n_non_resource_urls = 1},
    };
    const struct dv_api_cluster_role *role = write->value;
    const struct dv_api_cluster_role *old = write->old;
    const struct dv_access_request escalate = {.verb = DV_STR("escalate"),
                                               .group = DV_STR(DV_RBAC_GROUP),
                                               .resource = write->kind->plural,
                                               .namespace = write->namespace,
                                               .name = write->name};
    bool is_made_of_others = write->kind->id == DV_KIND_CLUSTER_ROLE &&
                             (role->aggregation_rule || (old && old->aggregation_rule));

    if (dv_access_allows(access, user, &escalate))
        return true;
    if (!has_rules(access, user, write, role->rules, role->n_rules, arena, reason))
        return false;
    if (!is_made_of_others || has_rules(access, user, write, all, DV_COUNT(all), arena, reason))
        return true;
    *reason = DV_STR("must have cluster-admin privileges to use the aggregationRule");
    return false;
}

static bool check_binding(const struct dv_access *access, const struct dv_api_user_info *user,
                          const struct dv_access_write *write, struct dv_arena *arena,
                          struct dv_access_denial *denial)
{
    const struct dv_api_role_ref *ref =
        &((const struct dv_api_role_binding *)write->value)->role_ref;
    bool is_cluster = dv_str_eq(ref->kind, DV_STR("ClusterRole"));
    const struct dv_access_request bind = {.verb = DV_STR("bind"),
                                           .group = ref->api_group,
                                           .resource = is_cluster ? DV_STR("clusterroles")
                                                                  : DV_STR("roles"),
                                           .namespace = write->namespace,
                                           .name = ref->name};
    const struct dv_access_role *role;
    const struct dv_api_cluster_role *value;

    if ((!is_cluster && !dv_str_eq(ref->kind, DV_STR("Role"))) || ref->name.n == 0)
        return true; /* no role can be meant: validation says so */
    if (dv_access_allows(access, user, &bind))
        return true;
    role = dv_access_find_role(access, ref->kind, write->namespace, ref->name);
    if (!role) {
        denial->missing_role = ref->name;
        return false;
    }
    value = role->object->value;
    return has_rules(access, user, write, value->rules, value->n_rules, arena, &denial->reason);
}

bool dv_access_check_write(const struct dv_access *access, const struct dv_api_user_info *user,
                           const struct dv_access_write *write, struct dv_arena *arena,
                           struct dv_access_denial *denial)
{
    *denial = (struct dv_access_denial){0};
    if (dv_access_has(user->groups, user->n_groups, DV_STR(GROUP_ADMINS)) ||
        is_for_collector(write, arena))
        return true;
    if (write->kind->id == DV_KIND_ROLE || write->kind->id == DV_KIND_CLUSTER_ROLE)
        return check_role(access, user, write, arena, &denial->reason);
    return check_binding(access, user, write, arena, denial);
}
