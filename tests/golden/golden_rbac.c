/* golden_rbac.c - replays golden/rbac: the roles that always exist, the rules that roles get from
 * others, and what reviews were answered in worlds of roles and bindings.
 *
 *     golden_rbac DIR      DIR holds worlds, and default objects
 *
 * What needs a server, requests and writes, is replayed by golden_rbac__requests. */
#include <stdio.h>
#include <stdlib.h>

#include "access/access.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/vec.h"
#include "jsonl.h"
#include "resource/resource.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (1024u * 1024u)
/* Roles may be made of roles that are made of others: so many times in a row is enough. */
#define N_ROUNDS 8

/* ---- reading ---- */

static dv_str str_of(const struct dv_json *doc, const char *key)
{
    const struct dv_json *value = dv_json_get(doc, dv_str_from_c(key));
    struct dv_err err;
    dv_str text;

    return value && dv_json_as_str(value, &text, &err) ? text : DV_STR_NONE;
}

static void read_object(const struct jsonl_record *record, const struct dv_json *doc,
                        struct dv_access_default *out)
{
    struct dv_err err;

    out->kind = dv_kind_by_name(DV_STR(DV_RBAC_GROUP), DV_STR("v1"), str_of(doc, "kind"), NULL);
    if (!out->kind) {
        printf("%s:%u: an object of another kind\n", record->file, record->line);
        exit(2);
    }
    out->value = dv_arena_alloc(record->arena, out->kind->versions->message->size,
                                out->kind->versions->message->align);
    if (!dv_decode_json(out->kind->versions->message, doc, DV_UNKNOWN_DROP, record->arena,
                        out->value, NULL, &err)) {
        printf("%s:%u: %s\n", record->file, record->line, err.msg);
        exit(2);
    }
    dv_default(out->kind, out->kind->versions, out->value, (struct dv_time){0}, record->arena);
}

static dv_str print(const struct dv_message *message, const void *value, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_encode_json_text(message, value, NULL, DV_STR_NONE, &buf);
    return dv_str_copy(dv_buf_str(&buf), arena);
}

/* ---- what always exists ---- */

static void replay_default(struct jsonl_record *record)
{
    struct dv_access_default wanted;
    const struct dv_api_object_meta *meta;
    const struct dv_message *message;
    size_t n;
    const struct dv_access_default *all = dv_access_defaults(record->arena, &n);

    read_object(record, record->json, &wanted);
    meta = wanted.value;
    message = wanted.kind->versions->message;
    for (size_t i = 0; i < n; i++) {
        const struct dv_api_object_meta *own = all[i].value;

        if (all[i].kind != wanted.kind || !dv_str_eq(own->name, meta->name) ||
            !dv_str_eq(own->namespace, meta->namespace))
            continue;
        jsonl_compare_str(record, "object", print(message, own, record->arena),
                          print(message, meta, record->arena));
        return;
    }
    jsonl_compare_str(record, "name", DV_STR("nothing"), meta->name);
}

/* ---- worlds ---- */

struct world {
    struct jsonl_record *record;
    DV_VEC(struct dv_access_default) objects;
    struct dv_access *access;
};

static void gather(struct world *world)
{
    struct dv_arena *arena = world->record->arena;
    DV_VEC(const struct dv_api_cluster_role *) roles = {0};

    for (size_t i = 0; i < world->objects.n; i++)
        if (world->objects.v[i].kind->id == DV_KIND_CLUSTER_ROLE)
            *dv_vec_add_in(&roles, arena) = world->objects.v[i].value;
    for (int round = 0; round < N_ROUNDS; round++)
        for (size_t i = 0; i < world->objects.n; i++) {
            struct dv_api_cluster_role *role = world->objects.v[i].value;
            struct dv_api_policy_rule *rules;
            size_t n;

            if (world->objects.v[i].kind->id != DV_KIND_CLUSTER_ROLE || !role->aggregation_rule)
                continue;
            rules = dv_access_aggregate(role, roles.v, roles.n, arena, &n);
            if (n == 0)
                continue; /* the controller applies no rules, and so takes nobody's away */
            role->rules = rules;
            role->n_rules = n;
        }
}

static void compare_gathered(struct world *world)
{
    struct jsonl_record *record = world->record;
    const struct dv_json *resulting = dv_json_get(record->json, DV_STR("resulting"));

    for (size_t i = 0; resulting && i < world->objects.n; i++) {
        const struct dv_api_cluster_role *role = world->objects.v[i].value;
        const struct dv_json *rules = dv_json_get(resulting, role->metadata.name);
        struct dv_json *doc;
        struct dv_api_cluster_role wanted = {0};
        struct dv_api_cluster_role got = {.rules = role->n_rules ? role->rules : NULL,
                                          .n_rules = role->n_rules};
        struct dv_err err;

        if (!rules || world->objects.v[i].kind->id != DV_KIND_CLUSTER_ROLE)
            continue;
        doc = dv_json_new_object(record->arena);
        dv_json_set(doc, DV_STR("rules"), dv_json_copy(rules, record->arena), record->arena);
        if (!dv_decode_json(&dv_message_cluster_role, doc, DV_UNKNOWN_DROP, record->arena, &wanted,
                            NULL, &err)) {
            printf("%s:%u: %s\n", record->file, record->line, err.msg);
            exit(2);
        }
        jsonl_compare_str(record, "gathered rules",
                          print(&dv_message_cluster_role, &got, record->arena),
                          print(&dv_message_cluster_role, &wanted, record->arena));
    }
}

static void replay_review(struct world *world, const struct dv_json *review)
{
    struct jsonl_record *record = world->record;
    const struct dv_json *attributes = dv_json_get(review, DV_STR("attributes"));
    const struct dv_json *groups = dv_json_get(review, DV_STR("groups"));
    struct dv_api_user_info user = {.username = str_of(review, "user")};
    const struct dv_access_request request = {.verb = str_of(attributes, "verb"),
                                              .path = str_of(attributes, "path"),
                                              .group = str_of(attributes, "group"),
                                              .resource = str_of(attributes, "resource"),
                                              .subresource = str_of(attributes, "subresource"),
                                              .namespace = str_of(attributes, "namespace"),
                                              .name = str_of(attributes, "name")};
    struct dv_err err;
    bool is_wanted;
    bool is_allowed = false;

    user.groups = DV_NEW_ARRAY(record->arena, dv_str, dv_json_n(groups) + 1);
    for (const struct dv_json *group = dv_json_first(groups); group; group = dv_json_next(group)) {
        if (!dv_json_as_str(group, &user.groups[user.n_groups], &err))
            exit(2);
        is_allowed |= dv_str_eq(user.groups[user.n_groups++], DV_STR("system:masters"));
    }
    if (!dv_json_as_bool(dv_json_get(review, DV_STR("allowed")), &is_wanted, &err)) {
        printf("%s:%u: %s\n", record->file, record->line, err.msg);
        exit(2);
    }
    is_allowed = is_allowed || dv_access_allows(world->access, &user, &request);
    if (is_allowed != is_wanted)
        printf("user %.*s, %.*s %.*s%.*s/%.*s:\n", DV_FMT(user.username), DV_FMT(request.verb),
               DV_FMT(request.path), DV_FMT(request.resource), DV_FMT(request.subresource));
    jsonl_compare_bool(record, "allowed", is_allowed, is_wanted);
}

static void replay_world(struct jsonl_record *record)
{
    struct world world = {.record = record, .access = dv_access_new()};
    const struct dv_json *reviews = dv_json_get(record->json, DV_STR("reviews"));
    const struct dv_json *objects = dv_json_get(record->json, DV_STR("objects"));
    size_t n;
    const struct dv_access_default *defaults = dv_access_defaults(record->arena, &n);

    for (size_t i = 0; i < n; i++)
        *dv_vec_add_in(&world.objects, record->arena) = defaults[i];
    for (const struct dv_json *one = dv_json_first(objects); one; one = dv_json_next(one))
        read_object(record, one, dv_vec_add_in(&world.objects, record->arena));
    gather(&world);
    compare_gathered(&world);
    for (size_t i = 0; i < world.objects.n; i++) {
        struct dv_object *object = dv_object_new(world.objects.v[i].kind, world.objects.v[i].value);

        dv_access_changed(world.access, NULL, object);
        dv_object_unref(object);
    }
    for (const struct dv_json *one = reviews ? dv_json_first(reviews) : NULL; one;
         one = dv_json_next(one))
        replay_review(&world, one);
    dv_access_free(world.access);
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"default-objects.jsonl", {"kind", "metadata"}, {"objects"}}, replay_default},
        {{"worlds.jsonl", {"id", "objects"}, {NULL}},                  replay_world  },
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
