/* fuzz_access.c - the index decides as the rules do when they are all read one after the other;
 * also after objects have gone and come back.
 *
 *     {"objects": [...], "user": "u", "groups": [...], "verb": ..., "path": ..., "group": ...,
 *      "resource": ..., "subresource": ..., "namespace": ..., "name": ...} */
#include "access/access.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define N_OBJECTS_MAX 64u

struct world {
    struct dv_object *objects[N_OBJECTS_MAX];
    size_t n;
    struct dv_api_user_info user;
    struct dv_access_request request;
    struct dv_arena *arena;
};

static dv_str text_of(const struct dv_json *doc, const char *key)
{
    struct dv_err err;
    dv_str text = DV_STR_NONE;
    const struct dv_json *value = dv_json_get(doc, dv_str_from_c(key));

    return value && dv_json_as_str(value, &text, &err) ? text : DV_STR_NONE;
}

/* ---- the slow way ---- */

static bool has(const dv_str *texts, size_t n, dv_str text)
{
    for (size_t i = 0; i < n; i++)
        if (dv_str_eq(texts[i], text))
            return true;
    return false;
}

static bool is_path_of(const struct dv_api_policy_rule *rule, dv_str path)
{
    for (size_t i = 0; i < rule->n_non_resource_urls; i++) {
        dv_str url = rule->non_resource_urls[i];
        bool is_prefix = url.n > 0 && url.p[url.n - 1] == '*';

        while (url.n > 0 && url.p[url.n - 1] == '*')
            url.n--;
        if (dv_str_eq(rule->non_resource_urls[i], path) ||
            (is_prefix && dv_str_starts_with(path, url)))
            return true;
    }
    return false;
}

static bool rule_allows(const struct world *world, const struct dv_api_policy_rule *rule)
{
    const struct dv_access_request *request = &world->request;
    dv_str full = request->subresource.n
                      ? dv_str_printf(world->arena, "%.*s/%.*s", DV_FMT(request->resource),
                                      DV_FMT(request->subresource))
                      : request->resource;
    dv_str any = dv_str_printf(world->arena, "*/%.*s", DV_FMT(request->subresource));

    if (!has(rule->verbs, rule->n_verbs, DV_STR("*")) &&
        !has(rule->verbs, rule->n_verbs, request->verb))
        return false;
    if (request->path.n)
        return is_path_of(rule, request->path);
    if (!has(rule->api_groups, rule->n_api_groups, DV_STR("*")) &&
        !has(rule->api_groups, rule->n_api_groups, request->group))
        return false;
    if (!has(rule->resources, rule->n_resources, DV_STR("*")) &&
        !has(rule->resources, rule->n_resources, full) &&
        !(request->subresource.n && has(rule->resources, rule->n_resources, any)))
        return false;
    return !rule->n_resource_names ||
           has(rule->resource_names, rule->n_resource_names, request->name);
}

static bool is_subject(const struct world *world, const struct dv_api_subject *subject,
                       dv_str namespace)
{
    if (dv_str_eq(subject->kind, DV_STR("User")))
        return dv_str_eq(subject->name, world->user.username);
    if (dv_str_eq(subject->kind, DV_STR("Group")))
        return has(world->user.groups, world->user.n_groups, subject->name);
    if (subject->namespace.n) {
        namespace = subject->namespace;
    }
    return dv_str_eq(subject->kind, DV_STR("ServiceAccount")) && namespace.n &&
           dv_str_eq(world->user.username,
                     dv_str_printf(world->arena, "system:serviceaccount:%.*s:%.*s",
                                   DV_FMT(namespace), DV_FMT(subject->name)));
}

/* The last object of a name is the one that there is. */
static bool is_there(const struct world *world, size_t at)
{
    for (size_t i = at + 1; i < world->n; i++)
        if (world->objects[i]->kind == world->objects[at]->kind &&
            dv_str_eq(world->objects[i]->meta->name, world->objects[at]->meta->name) &&
            dv_str_eq(world->objects[i]->meta->namespace, world->objects[at]->meta->namespace))
            return false;
    return true;
}

static bool role_allows(const struct world *world, const struct dv_api_role_ref *ref,
                        dv_str namespace)
{
    bool is_cluster = dv_str_eq(ref->kind, DV_STR("ClusterRole"));

    for (size_t i = 0; i < world->n; i++) {
        const struct dv_api_cluster_role *role = world->objects[i]->value;
        enum dv_kind_id kind = is_cluster ? DV_KIND_CLUSTER_ROLE : DV_KIND_ROLE;

        if (world->objects[i]->kind->id != kind || !is_there(world, i) ||
            !dv_str_eq(role->metadata.name, ref->name) ||
            !dv_str_eq(role->metadata.namespace, is_cluster ? DV_STR_NONE : namespace))
            continue;
        for (size_t k = 0; k < role->n_rules; k++)
            if (rule_allows(world, &role->rules[k]))
                return true;
    }
    return false;
}

static bool allows(const struct world *world)
{
    for (size_t i = 0; i < world->n; i++) {
        const struct dv_api_role_binding *binding = world->objects[i]->value;
        enum dv_kind_id kind = world->objects[i]->kind->id;
        dv_str namespace = binding->metadata.namespace;

        if ((kind != DV_KIND_ROLE_BINDING && kind != DV_KIND_CLUSTER_ROLE_BINDING) ||
            !is_there(world, i) ||
            (namespace.n &&
             (world->request.path.n || !dv_str_eq(namespace, world->request.namespace))))
            continue;
        for (size_t k = 0; k < binding->n_subjects; k++)
            if (is_subject(world, &binding->subjects[k], namespace) &&
                role_allows(world, &binding->role_ref, namespace))
                return true;
    }
    return false;
}

/* ---- reading ---- */

/* Only what validation lets in: a scope that fits, and names that are there. */
static void add_object(struct world *world, const struct dv_json *doc)
{
    const struct dv_kind *kind = dv_kind_by_name(DV_STR("rbac.authorization.k8s.io"), DV_STR("v1"),
                                                 text_of(doc, "kind"), NULL);
    const struct dv_api_object_meta *meta;
    struct dv_err err;
    void *value;

    if (!kind || world->n == N_OBJECTS_MAX)
        return;
    value =
        dv_arena_alloc(world->arena, kind->versions->message->size, kind->versions->message->align);
    if (!dv_decode_json(kind->versions->message, doc, DV_UNKNOWN_DROP, world->arena, value, NULL,
                        &err))
        return;
    meta = value;
    if ((meta->namespace.n > 0) != kind->is_namespaced ||
        dv_str_find_char(meta->namespace, '/') < meta->namespace.n)
        return;
    world->objects[world->n++] = dv_object_new(kind, value);
}

static void read_world(const struct dv_json *doc, struct world *world)
{
    const struct dv_json *groups = dv_json_get(doc, DV_STR("groups"));
    const struct dv_json *objects = dv_json_get(doc, DV_STR("objects"));
    DV_VEC(dv_str) names = {0};
    struct dv_err err;
    dv_str name;

    for (const struct dv_json *one = objects ? dv_json_first(objects) : NULL; one;
         one = dv_json_next(one))
        add_object(world, one);
    for (const struct dv_json *one = groups ? dv_json_first(groups) : NULL; one;
         one = dv_json_next(one))
        if (dv_json_as_str(one, &name, &err))
            *dv_vec_add_in(&names, world->arena) = name;
    world->user = (struct dv_api_user_info){
        .username = text_of(doc, "user"), .groups = names.v, .n_groups = names.n};
    world->request = (struct dv_access_request){.verb = text_of(doc, "verb"),
                                                .path = text_of(doc, "path"),
                                                .group = text_of(doc, "group"),
                                                .resource = text_of(doc, "resource"),
                                                .subresource = text_of(doc, "subresource"),
                                                .namespace = text_of(doc, "namespace"),
                                                .name = text_of(doc, "name")};
}

static bool decide(const struct dv_access *access, const struct world *world)
{
    bool is_allowed = dv_access_allows(access, &world->user, &world->request);
    dv_str reason = dv_access_reason(access, &world->user, &world->request, world->arena);

    assert(is_allowed == dv_str_starts_with(reason, DV_STR("RBAC: allowed by ")));
    return is_allowed;
}

/* Whoever is allowed something may give it on, and nobody else. */
static void check_grant(const struct dv_access *access, struct world *world, bool is_allowed)
{
    struct dv_access_request *request = &world->request;
    struct dv_api_policy_rule rule = {.verbs = &request->verb, .n_verbs = 1};
    struct dv_api_cluster_role role = {.rules = &rule, .n_rules = 1};
    const struct dv_access_write write = {.kind = dv_kind(DV_KIND_CLUSTER_ROLE), .value = &role};
    struct dv_access_denial denial;

    if (!request->path.n)
        return;
    rule.non_resource_urls = &request->path;
    rule.n_non_resource_urls = 1;
    if (is_allowed)
        assert(dv_access_check_write(access, &world->user, &write, world->arena, &denial));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json_opts opts = {.depth_max = 30, .nodes_max = 5000};
    struct world world = {.arena = arena};
    struct dv_access *access;
    struct dv_err err;
    const struct dv_json *doc =
        dv_json_parse((dv_str){(const char *)data, size}, &opts, arena, &err);
    bool wanted;

    if (!doc || dv_json_kind(doc) != DV_JSON_OBJECT)
        return 0;
    read_world(doc, &world);
    if (world.request.resource.n + world.request.subresource.n < 250) {
        access = dv_access_new();
        wanted = allows(&world);
        for (size_t i = 0; i < world.n; i++)
            dv_access_changed(access, NULL, world.objects[i]);
        assert(decide(access, &world) == wanted);
        check_grant(access, &world, wanted);
        for (size_t i = 0; i < world.n; i++)
            dv_access_changed(access, world.objects[i], NULL);
        assert(!decide(access, &world));
        for (size_t i = 0; i < world.n; i++)
            dv_access_changed(access, NULL, world.objects[i]);
        assert(decide(access, &world) == wanted);
        dv_access_free(access);
    }
    for (size_t i = 0; i < world.n; i++)
        dv_object_unref(world.objects[i]);
    return 0;
}
