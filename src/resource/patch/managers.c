/* managers.c - the entries of metadata.managedFields: read, found, kept within bounds, written. */
#include "resource/patch/managers.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "resource/codec/pack_fields.h"
#include "resource/resource.h"

/* The reference's limit: more entries of Update than this are folded together. */
#define UPDATES_MAX 10u

#define APPLY DV_STR("Apply")
#define UPDATE DV_STR("Update")
#define ANCIENT DV_STR("ancient-changes")

struct dv_field_owners dv_field_owners_decode(const struct dv_managed_fields *managed,
                                              struct dv_arena *arena)
{
    struct dv_field_owners owners = {0};
    struct dv_err ignored;

    for (size_t i = 0; managed && i < managed->n; i++) {
        const struct dv_api_managed_fields_entry *entry = &managed->v[i];
        struct dv_field_owner owner = {.manager = entry->manager,
                                       .api_version = entry->api_version,
                                       .subresource = entry->subresource,
                                       .time = entry->time,
                                       .is_applied = dv_str_eq(entry->operation, APPLY)};

        if (entry->fields_v1.n == 0 || !dv_fields_parse(dv_fields_text(entry->fields_v1, arena),
                                                        arena, &owner.fields, &ignored))
            continue;
        *dv_vec_add_in(&owners, arena) = owner;
    }
    return owners;
}

static int64_t seconds_of(const struct dv_field_owner *owner)
{
    return owner->time.is_set ? owner->time.seconds : 0;
}

static int cmp_owners(const void *a, const void *b)
{
    const struct dv_field_owner *x = a;
    const struct dv_field_owner *y = b;
    int order;

    if (x->is_applied != y->is_applied)
        return x->is_applied ? -1 : 1;
    if (seconds_of(x) != seconds_of(y))
        return seconds_of(x) < seconds_of(y) ? -1 : 1;
    order = dv_str_cmp(x->manager, y->manager);
    if (order == 0)
        order = dv_str_cmp(x->api_version, y->api_version);
    return order ? order : dv_str_cmp(x->subresource, y->subresource);
}

struct dv_managed_fields dv_field_owners_encode(struct dv_field_owners *owners,
                                                struct dv_arena *arena)
{
    struct dv_managed_fields managed = {0};

    if (owners->n > 0)
        qsort(owners->v, owners->n, sizeof(owners->v[0]), cmp_owners);
    managed.v = DV_NEW_ARRAY(arena, struct dv_api_managed_fields_entry, owners->n);
    for (size_t i = 0; i < owners->n; i++) {
        const struct dv_field_owner *owner = &owners->v[i];

        if (dv_fields_is_empty(&owner->fields))
            continue;
        managed.v[managed.n++] = (struct dv_api_managed_fields_entry){
            .manager = owner->manager,
            .operation = owner->is_applied ? APPLY : UPDATE,
            .api_version = owner->api_version,
            .time = owner->time,
            .fields_type = DV_STR("FieldsV1"),
            .fields_v1 = dv_fields_print(&owner->fields, arena),
            .subresource = owner->subresource,
        };
    }
    return managed;
}

static struct dv_field_owner *find_owner(struct dv_field_owners *owners,
                                         const struct dv_manager *manager, bool is_applied)
{
    for (size_t i = 0; i < owners->n; i++) {
        struct dv_field_owner *owner = &owners->v[i];

        if (owner->is_applied == is_applied && dv_str_eq(owner->manager, manager->name) &&
            dv_str_eq(owner->subresource, manager->subresource) &&
            (is_applied || dv_str_eq(owner->api_version, manager->api_version)))
            return owner;
    }
    return NULL;
}

struct dv_field_owner *dv_field_owners_get(struct dv_field_owners *owners,
                                           const struct dv_manager *manager, bool is_applied,
                                           struct dv_arena *arena)
{
    struct dv_field_owner *owner = find_owner(owners, manager, is_applied);

    if (owner)
        return owner;
    owner = dv_vec_add_in(owners, arena);
    owner->manager = manager->name;
    owner->api_version = manager->api_version;
    owner->subresource = manager->subresource;
    owner->is_applied = is_applied;
    return owner;
}

static size_t count_updates(const struct dv_field_owners *owners)
{
    size_t n = 0;

    for (size_t i = 0; i < owners->n; i++)
        n += !owners->v[i].is_applied && !dv_fields_is_empty(&owners->v[i].fields);
    return n;
}

/* The oldest entry before `i` that is an update of the same version; NULL when there is none. */
static struct dv_field_owner *first_of_version(struct dv_field_owners *owners, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (!owners->v[j].is_applied && !dv_fields_is_empty(&owners->v[j].fields) &&
            dv_str_eq(owners->v[j].api_version, owners->v[i].api_version))
            return &owners->v[j];
    return NULL;
}

void dv_field_owners_cap(struct dv_field_owners *owners, struct dv_arena *arena)
{
    size_t n = count_updates(owners);

    if (n <= UPDATES_MAX)
        return;
    qsort(owners->v, owners->n, sizeof(owners->v[0]), cmp_owners);
    for (size_t i = 0; i < owners->n && n > UPDATES_MAX; i++) {
        struct dv_field_owner *owner = &owners->v[i];
        struct dv_field_owner *first;

        if (owner->is_applied || dv_fields_is_empty(&owner->fields))
            continue;
        first = first_of_version(owners, i);
        if (!first)
            continue;
        first->manager = ANCIENT;
        first->subresource = DV_STR("");
        first->fields = dv_fields_union(&first->fields, &owner->fields, arena);
        first->time = owner->time;
        owner->fields = (struct dv_fields){0};
        n--;
    }
}

bool dv_field_owner_speaks(const struct dv_field_owner *owner, dv_str api_version)
{
    dv_str version;
    dv_str group;
    dv_str asked;

    dv_api_version_split(owner->api_version, &group, &version);
    dv_api_version_split(api_version, &asked, &version);
    return dv_str_eq(group, asked);
}

/* ---- fields that are special ---- */

static const char *const never_owned[] = {
    "creationTimestamp", "generation",      "managedFields", "name",
    "namespace",         "resourceVersion", "selfLink",      "uid",
};

struct dv_fields dv_field_owners_strip(const struct dv_fields *fields, struct dv_arena *arena)
{
    struct dv_fields root = {0};
    struct dv_fields *meta = dv_fields_add(&root, 'f', DV_STR("metadata"), arena);

    meta->in = DV_FIELDS_MEMBER;
    for (size_t i = 0; i < DV_COUNT(never_owned); i++)
        dv_fields_add(meta, 'f', dv_str_from_c(never_owned[i]), arena)->in = DV_FIELDS_MEMBER;
    return dv_fields_difference(fields, &root, DV_FIELDS_MEMBER, arena);
}

/* At most three paths: "metadata", "spec", or a field of metadata. Sorted. */
static const struct {
    const char *message;
    const char *subresource;
    const char *tops[2];
    const char *metas[2];
} resets[] = {
    {"Pod",                       "",         {"status", NULL},     {NULL, NULL}                            },
    {"Pod",                       "status",   {"spec", NULL},       {"deletionTimestamp", "ownerReferences"}},
    {"Node",                      "",         {"status", NULL},     {NULL, NULL}                            },
    {"Node",                      "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"Namespace",                 "",         {"status", NULL},     {NULL, NULL}                            },
    {"Namespace",                 "finalize", {"status", NULL},     {NULL, NULL}                            },
    {"Namespace",                 "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"ResourceClaim",             "",         {"status", NULL},     {NULL, NULL}                            },
    {"ResourceClaim",             "status",   {"metadata", "spec"}, {NULL, NULL}                            },
    {"DeviceTaintRule",           "",         {"status", NULL},     {NULL, NULL}                            },
    {"DeviceTaintRule",           "status",   {"metadata", "spec"}, {NULL, NULL}                            },
    {"DaemonSet",                 "",         {"status", NULL},     {NULL, NULL}                            },
    {"DaemonSet",                 "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"Deployment",                "",         {"status", NULL},     {NULL, NULL}                            },
    {"Deployment",                "status",   {"spec", NULL},       {"labels", NULL}                        },
    {"ReplicaSet",                "",         {"status", NULL},     {NULL, NULL}                            },
    {"ReplicaSet",                "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"Job",                       "",         {"status", NULL},     {NULL, NULL}                            },
    {"Job",                       "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"Service",                   "",         {"status", NULL},     {NULL, NULL}                            },
    {"Service",                   "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"ResourceQuota",             "",         {"status", NULL},     {NULL, NULL}                            },
    {"ResourceQuota",             "status",   {"spec", NULL},       {NULL, NULL}                            },
    {"ValidatingAdmissionPolicy", "",         {"status", NULL},     {NULL, NULL}                            },
    {"ValidatingAdmissionPolicy", "status",   {"metadata", "spec"}, {NULL, NULL}                            },
};

struct dv_fields dv_field_owners_reset(const struct dv_message *message, dv_str subresource,
                                       struct dv_arena *arena)
{
    struct dv_fields root = {0};
    struct dv_fields *meta = NULL;

    for (size_t i = 0; i < DV_COUNT(resets); i++) {
        if (!dv_str_eq(message->name, dv_str_from_c(resets[i].message)) ||
            !dv_str_eq(subresource, dv_str_from_c(resets[i].subresource)))
            continue;
        for (size_t j = 0; j < 2 && resets[i].metas[j]; j++) {
            meta = meta ? meta : dv_fields_add(&root, 'f', DV_STR("metadata"), arena);
            dv_fields_add(meta, 'f', dv_str_from_c(resets[i].metas[j]), arena)->in =
                DV_FIELDS_MEMBER;
        }
        for (size_t j = 0; j < 2 && resets[i].tops[j]; j++)
            dv_fields_add(&root, 'f', dv_str_from_c(resets[i].tops[j]), arena)->in =
                DV_FIELDS_MEMBER;
    }
    return root;
}

struct dv_fields dv_field_owners_reset_custom(bool has_status, dv_str subresource,
                                              struct dv_arena *arena)
{
    struct dv_fields root = {0};

    if (dv_str_eq(subresource, DV_STR("status"))) {
        dv_fields_add(&root, 'f', DV_STR("metadata"), arena)->in = DV_FIELDS_MEMBER;
        dv_fields_add(&root, 'f', DV_STR("spec"), arena)->in = DV_FIELDS_MEMBER;
    } else if (has_status) {
        dv_fields_add(&root, 'f', DV_STR("status"), arena)->in = DV_FIELDS_MEMBER;
    }
    return root;
}
