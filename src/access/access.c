/* access.c - the index of roles and bindings: from a namespace, or the cluster, to the users and
 * groups that are given something there, from these to grants, from a grant to its role, and in a
 * role from a group and resource to its rules. A role that a binding names has an entry also when
 * there is no such role: it may come later. */
#include "access/access.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "access/access_rule.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "resource/resource.h"

#define TEXT_BYTES_MAX (64u * 1024u)
/* A role with so few rules is read faster than its cells are searched. */
#define FEW_RULES 3u
/* A rule has a cell for each of its groups with each of its resources. A role that would have more
 * is compared rule by rule, so that nobody's role takes much more memory than its text. */
#define N_CELLS_MAX 16384u
#define ACCOUNT_PREFIX "system:serviceaccount:"

/* What one user or group is given in one place. */
struct holder {
    char *name;
    DV_VEC(struct dv_access_grant) grants;
};

/* One namespace, or the whole cluster. */
struct scope {
    char *name;
    struct dv_map users; /* struct holder */
    struct dv_map groups;
};

struct binding {
    char *key;
    struct dv_object *object; /* a reference */
};

struct dv_access {
    struct scope cluster;
    struct dv_map namespaces; /* struct scope */
    struct dv_map roles;      /* struct dv_access_role */
    struct dv_map bindings;   /* struct binding */
    struct dv_buf key;        /* of what is being looked for */
};

/* Copies the text to the heap, for free(). */
static char *copy_text(dv_str text)
{
    char *copy = dv_alloc(text.n + 1);

    if (text.n > 0)
        memcpy(copy, text.p, text.n);
    return copy;
}

/* ---- roles ---- */

static int compare_cells(const void *a, const void *b)
{
    uint32_t x = ((const struct dv_access_cell *)a)->hash;
    uint32_t y = ((const struct dv_access_cell *)b)->hash;

    return x < y ? -1 : x > y;
}

static size_t count_cells(const struct dv_api_cluster_role *role)
{
    size_t n = 0;

    for (size_t i = 0; i < role->n_rules; i++) {
        const struct dv_api_policy_rule *rule = &role->rules[i];

        if (rule->n_api_groups > N_CELLS_MAX || rule->n_resources > N_CELLS_MAX)
            return N_CELLS_MAX + 1;
        n += rule->n_api_groups * rule->n_resources;
        if (n > N_CELLS_MAX)
            break;
    }
    return n;
}

static void compile(struct dv_access_role *role)
{
    const struct dv_api_cluster_role *value = role->object ? role->object->value : NULL;
    size_t n;

    free(role->cells);
    role->cells = NULL;
    role->n_cells = 0;
    if (!value || value->n_rules <= FEW_RULES)
        return;
    n = count_cells(value);
    if (n > N_CELLS_MAX)
        return;
    role->cells = dv_alloc((n + 1) * sizeof(*role->cells));
    for (size_t i = 0; i < value->n_rules; i++) {
        const struct dv_api_policy_rule *rule = &value->rules[i];

        for (size_t g = 0; g < rule->n_api_groups; g++)
            for (size_t r = 0; r < rule->n_resources; r++)
                role->cells[role->n_cells++] = (struct dv_access_cell){
                    dv_access_cell(rule->api_groups[g], rule->resources[r]), (uint32_t)i};
    }
    qsort(role->cells, role->n_cells, sizeof(*role->cells), compare_cells);
}

static bool is_in_cell(const struct dv_access_role *role, uint32_t hash,
                       const struct dv_access_question *question)
{
    const struct dv_api_cluster_role *value = role->object->value;
    size_t from = 0;
    size_t to = role->n_cells;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (role->cells[middle].hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    for (; from < role->n_cells && role->cells[from].hash == hash; from++)
        if (dv_access_rule_covers(&value->rules[role->cells[from].rule], question))
            return true;
    return false;
}

static bool role_covers(const struct dv_access_role *role,
                        const struct dv_access_question *question)
{
    const struct dv_api_cluster_role *value;

    if (!role->object)
        return false;
    value = role->object->value;
    if (role->cells && question->n_cells > 0) {
        for (size_t i = 0; i < question->n_cells; i++)
            if (is_in_cell(role, question->cells[i], question))
                return true;
        return false;
    }
    for (size_t i = 0; i < value->n_rules; i++)
        if (dv_access_rule_covers(&value->rules[i], question))
            return true;
    return false;
}

static dv_str print_key(struct dv_buf *buf, dv_str namespace, dv_str name)
{
    dv_buf_clear(buf);
    dv_buf_printf(buf, "%.*s/%.*s", DV_FMT(namespace), DV_FMT(name));
    return dv_buf_str(buf);
}

static struct dv_access_role *add_role(struct dv_access *access, dv_str namespace, dv_str name)
{
    dv_str key = print_key(&access->key, namespace, name);
    struct dv_access_role *role = dv_map_get(&access->roles, key);

    if (!role) {
        role = DV_ALLOC(struct dv_access_role);
        role->key = copy_text(key);
        (void)dv_map_set(&access->roles, dv_str_from_c(role->key), role);
    }
    return role;
}

static void free_role(struct dv_access_role *role)
{
    dv_object_unref(role->object);
    free(role->cells);
    free(role->key);
    free(role);
}

static void drop_role(struct dv_access *access, struct dv_access_role *role)
{
    if (role->object || role->n_grants > 0)
        return;
    (void)dv_map_remove(&access->roles, dv_str_from_c(role->key));
    free_role(role);
}

static void role_changed(struct dv_access *access, const struct dv_api_object_meta *meta,
                         struct dv_object *now)
{
    struct dv_access_role *role = add_role(access, meta->namespace, meta->name);

    if (now)
        now = dv_object_ref(now);
    dv_object_unref(role->object);
    role->object = now;
    compile(role);
    drop_role(access, role);
}

const struct dv_access_role *dv_access_find_role(const struct dv_access *access, dv_str kind,
                                                 dv_str namespace, dv_str name)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf key;
    const struct dv_access_role *role;

    dv_buf_init(&key, TEXT_BYTES_MAX);
    if (dv_str_eq(kind, DV_STR("ClusterRole"))) {
        namespace = DV_STR_NONE;
    }
    role = dv_map_get(&access->roles, print_key(&key, namespace, name));
    return role && role->object ? role : NULL;
}

/* ---- bindings ---- */

static void init_scope(struct scope *scope)
{
    dv_map_init(&scope->users);
    dv_map_init(&scope->groups);
}

static struct scope *find_scope(struct dv_access *access, dv_str namespace)
{
    struct scope *scope;

    if (namespace.n == 0)
        return &access->cluster;
    scope = dv_map_get(&access->namespaces, namespace);
    if (!scope) {
        scope = DV_ALLOC(struct scope);
        init_scope(scope);
        scope->name = copy_text(namespace);
        (void)dv_map_set(&access->namespaces, dv_str_from_c(scope->name), scope);
    }
    return scope;
}

/* Returns the name under which the subject asks, and in which map of the scope it is. False: the
 * subject is nobody. */
static bool find_subject(struct dv_access *access, struct scope *scope,
                         const struct dv_api_subject *subject, dv_str binding_namespace,
                         struct dv_map **map, dv_str *name)
{
    dv_str namespace = subject->namespace.n > 0 ? subject->namespace : binding_namespace;

    *map = &scope->users;
    *name = subject->name;
    if (dv_str_eq(subject->kind, DV_STR("User")))
        return true;
    if (dv_str_eq(subject->kind, DV_STR("Group"))) {
        *map = &scope->groups;
        return true;
    }
    if (!dv_str_eq(subject->kind, DV_STR("ServiceAccount")) || namespace.n == 0)
        return false;
    dv_buf_clear(&access->key);
    dv_buf_printf(&access->key, ACCOUNT_PREFIX "%.*s:%.*s", DV_FMT(namespace),
                  DV_FMT(subject->name));
    *name = dv_buf_str(&access->key);
    return true;
}

static void add_grant(struct dv_map *map, dv_str name, struct dv_access_grant grant)
{
    struct holder *holder = dv_map_get(map, name);

    if (!holder) {
        holder = DV_ALLOC(struct holder);
        holder->name = copy_text(name);
        (void)dv_map_set(map, dv_str_from_c(holder->name), holder);
    }
    *dv_vec_add(&holder->grants) = grant;
    grant.role->n_grants++;
}

static void free_holder(struct holder *holder)
{
    dv_vec_fini(&holder->grants);
    free(holder->name);
    free(holder);
}

static void remove_grants(struct dv_access *access, struct dv_map *map, dv_str name,
                          const struct dv_object *binding)
{
    struct holder *holder = dv_map_get(map, name);

    for (size_t i = holder ? holder->grants.n : 0; i > 0; i--) {
        struct dv_access_role *role = holder->grants.v[i - 1].role;

        if (holder->grants.v[i - 1].binding != binding)
            continue;
        dv_vec_remove_swap(&holder->grants, i - 1);
        role->n_grants--;
        drop_role(access, role);
    }
    if (holder && holder->grants.n == 0) {
        (void)dv_map_remove(map, dv_str_from_c(holder->name));
        free_holder(holder);
    }
}

static void free_scope(struct scope *scope)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&scope->users, &at));)
        free_holder(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&scope->groups, &at));)
        free_holder(entry->value);
    dv_map_fini(&scope->users);
    dv_map_fini(&scope->groups);
    free(scope->name);
}

/* Adds what the binding gives to all its subjects, or takes it from them. */
static void set_grants(struct dv_access *access, struct dv_object *object, bool is_given)
{
    const struct dv_api_role_binding *value = object->value;
    dv_str namespace = value->metadata.namespace;
    bool is_cluster = dv_str_eq(value->role_ref.kind, DV_STR("ClusterRole"));
    struct scope *scope = find_scope(access, namespace);
    struct dv_map *map;
    dv_str name;

    for (size_t i = 0; i < value->n_subjects; i++) {
        struct dv_access_role *role =
            is_given ? add_role(access, is_cluster ? DV_STR_NONE : namespace, value->role_ref.name)
                     : NULL;

        if (!find_subject(access, scope, &value->subjects[i], namespace, &map, &name)) {
            if (role)
                drop_role(access, role);
        } else if (role) {
            add_grant(map, name,
                      (struct dv_access_grant){.role = role, .binding = object, .subject = i});
        } else {
            remove_grants(access, map, name, object);
        }
    }
    if (namespace.n > 0 && scope->users.n + scope->groups.n == 0) {
        (void)dv_map_remove(&access->namespaces, namespace);
        free_scope(scope);
        free(scope);
    }
}

static void free_binding(struct binding *binding)
{
    dv_object_unref(binding->object);
    free(binding->key);
    free(binding);
}

static void binding_changed(struct dv_access *access, const struct dv_api_object_meta *meta,
                            struct dv_object *now)
{
    dv_str key = print_key(&access->key, meta->namespace, meta->name);
    struct binding *binding = dv_map_get(&access->bindings, key);

    if (!binding) {
        binding = DV_ALLOC(struct binding);
        binding->key = copy_text(key);
        (void)dv_map_set(&access->bindings, dv_str_from_c(binding->key), binding);
    }
    if (binding->object)
        set_grants(access, binding->object, false);
    dv_object_unref(binding->object);
    binding->object = NULL;
    if (now) {
        binding->object = dv_object_ref(now);
        set_grants(access, binding->object, true);
        return;
    }
    (void)dv_map_remove(&access->bindings, dv_str_from_c(binding->key));
    free_binding(binding);
}

/* ---- life ---- */

struct dv_access *dv_access_new(void)
{
    struct dv_access *access = DV_ALLOC(struct dv_access);

    init_scope(&access->cluster);
    dv_map_init(&access->namespaces);
    dv_map_init(&access->roles);
    dv_map_init(&access->bindings);
    dv_buf_init(&access->key, TEXT_BYTES_MAX);
    return access;
}

void dv_access_free(struct dv_access *access)
{
    const struct dv_map_entry *entry;

    if (!access)
        return;
    free_scope(&access->cluster);
    for (size_t at = 0; (entry = dv_map_next(&access->namespaces, &at));) {
        free_scope(entry->value);
        free(entry->value);
    }
    for (size_t at = 0; (entry = dv_map_next(&access->roles, &at));)
        free_role(entry->value);
    for (size_t at = 0; (entry = dv_map_next(&access->bindings, &at));)
        free_binding(entry->value);
    dv_map_fini(&access->namespaces);
    dv_map_fini(&access->roles);
    dv_map_fini(&access->bindings);
    dv_buf_fini(&access->key);
    free(access);
}

void dv_access_changed(struct dv_access *access, const struct dv_object *old, struct dv_object *now)
{
    const struct dv_object *either = now ? now : old;
    enum dv_kind_id kind = either->kind->id;

    if (kind == DV_KIND_ROLE || kind == DV_KIND_CLUSTER_ROLE)
        role_changed(access, either->meta, now);
    else
        binding_changed(access, either->meta, now);
}

/* ---- decisions ---- */

static const struct dv_access_grant *each_of(const struct dv_map *map, dv_str name,
                                             dv_access_visit *visit, void *ctx)
{
    const struct holder *holder = dv_map_get(map, name);

    for (size_t i = 0; holder && i < holder->grants.n; i++)
        if (!visit(ctx, &holder->grants.v[i]))
            return &holder->grants.v[i];
    return NULL;
}

static const struct dv_access_grant *each_in(const struct scope *scope,
                                             const struct dv_api_user_info *user,
                                             dv_access_visit *visit, void *ctx)
{
    const struct dv_access_grant *grant = each_of(&scope->users, user->username, visit, ctx);

    for (size_t i = 0; !grant && scope->groups.n > 0 && i < user->n_groups; i++)
        grant = each_of(&scope->groups, user->groups[i], visit, ctx);
    return grant;
}

const struct dv_access_grant *dv_access_each(const struct dv_access *access,
                                             const struct dv_api_user_info *user, dv_str namespace,
                                             dv_access_visit *visit, void *ctx)
{
    const struct dv_access_grant *grant = each_in(&access->cluster, user, visit, ctx);
    const struct scope *scope;

    if (grant || namespace.n == 0)
        return grant;
    scope = dv_map_get(&access->namespaces, namespace);
    return scope ? each_in(scope, user, visit, ctx) : NULL;
}

static bool is_not_covered(void *ctx, const struct dv_access_grant *grant)
{
    const struct dv_access_question *question = ctx;

    return !role_covers(grant->role, question);
}

const struct dv_access_grant *dv_access_find_grant(const struct dv_access *access,
                                                   const struct dv_api_user_info *user,
                                                   const struct dv_access_request *request)
{
    struct dv_access_question question;

    dv_access_ask(request, &question);
    return dv_access_each(access, user, request->path.n > 0 ? DV_STR_NONE : request->namespace,
                          is_not_covered, &question);
}

bool dv_access_covers(const struct dv_access *access, const struct dv_api_user_info *user,
                      dv_str namespace, struct dv_access_question *question)
{
    return dv_access_each(access, user, namespace, is_not_covered, question) != NULL;
}

bool dv_access_allows(const struct dv_access *access, const struct dv_api_user_info *user,
                      const struct dv_access_request *request)
{
    return dv_access_find_grant(access, user, request) != NULL;
}
