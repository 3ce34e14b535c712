/* validate_meta.c - what all objects have: names, labels, owners, finalizers. */
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/visible.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

#define ANNOTATIONS_BYTES_MAX (256u * 1024u)
#define MANAGER_BYTES_MAX 128u
#define TEXT_BYTES_MAX (4u * 1024u * 1024u)

static const struct dv_field_path meta_path = {.kind = PATH_NAME, .name = "metadata"};

static void check_labels(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < meta->n_labels; i++) {
        dv_check_label_name(problems, path, "labels", meta->labels[i].key);
        dv_check_label_value(problems, path, "labels", meta->labels[i].value);
    }
}

static void check_annotations(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_object_meta *meta)
{
    size_t n_bytes = 0;

    for (size_t i = 0; i < meta->n_annotations; i++) {
        n_bytes += meta->annotations[i].key.n + meta->annotations[i].value.n;
        dv_check_annotation_name(problems, path, "annotations", meta->annotations[i].key);
    }
    if (n_bytes > ANNOTATIONS_BYTES_MAX)
        dv_too_long(problems, path, "annotations", ANNOTATIONS_BYTES_MAX);
}

static void check_owner(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_owner_reference *owner)
{
    size_t slash = dv_str_find_char(owner->api_version, '/');
    dv_str version = slash < owner->api_version.n
                         ? dv_str_slice(owner->api_version, slash + 1, owner->api_version.n)
                         : owner->api_version;
    const struct {
        const char *name;
        dv_str value;
    } fields[] = {
        {"kind", owner->kind},
        {"name", owner->name},
        {"uid",  owner->uid },
    };

    if (version.n == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "apiVersion",
                       dv_bad_str(owner->api_version), "version must not be empty");
    for (size_t i = 0; i < DV_COUNT(fields); i++)
        if (fields[i].value.n == 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, fields[i].name,
                           dv_bad_str(fields[i].value), "must not be empty");
    if (dv_str_eq(owner->api_version, DV_STR("v1")) && dv_str_eq(owner->kind, DV_STR("Event")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_message(&dv_message_owner_reference, owner, problems->arena),
                       "/v1, Kind=Event is disallowed from being an owner");
}

static void check_owners(struct dv_problems *problems, const struct dv_field_path *up,
                         const struct dv_api_object_meta *meta)
{
    struct dv_field_path path = dv_path_name(up, "ownerReferences");
    const struct dv_api_owner_reference *controller = NULL;

    for (size_t i = 0; i < meta->n_owner_references; i++) {
        const struct dv_api_owner_reference *owner = &meta->owner_references[i];

        check_owner(problems, &path, owner);
        if (!owner->controller || !*owner->controller)
            continue;
        if (controller && !dv_problems_are_full(problems))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL,
                           dv_bad_messages(&dv_message_owner_reference, meta->owner_references,
                                           meta->n_owner_references, problems->arena),
                           "Only one reference can have Controller set to true. Found \"true\" in "
                           "references for %.*s/%.*s and %.*s/%.*s",
                           DV_FMT(controller->kind), DV_FMT(controller->name), DV_FMT(owner->kind),
                           DV_FMT(owner->name));
        controller = owner;
    }
}

static void check_finalizers(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_object_meta *meta)
{
    for (size_t i = 0; i < meta->n_finalizers; i++)
        dv_check_label_name(problems, path, "finalizers", meta->finalizers[i]);
    if (dv_meta_has_finalizer(meta, DV_STR("orphan")) &&
        dv_meta_has_finalizer(meta, DV_STR("foregroundDeletion")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "finalizers",
                       dv_bad_strs(meta->finalizers, meta->n_finalizers, problems->arena),
                       "finalizer orphan and foregroundDeletion cannot be both set");
}

/* Checks that a finalizer without a domain is one of the API's own. */
static void check_finalizer_domains(struct dv_problems *problems, const struct dv_field_path *up,
                                    const struct dv_api_object_meta *meta)
{
    static const dv_str standard[] = {
        DV_STR_INIT("kubernetes"),
        DV_STR_INIT("orphan"),
        DV_STR_INIT("foregroundDeletion"),
    };
    struct dv_field_path path = dv_path_name(up, "finalizers");

    for (size_t i = 0; i < meta->n_finalizers; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        dv_str name = meta->finalizers[i];
        bool is_known = dv_str_find_char(name, '/') < name.n;

        for (size_t j = 0; j < DV_COUNT(standard); j++)
            is_known = is_known || dv_str_eq(name, standard[j]);
        if (!is_known)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL, dv_bad_str(name),
                           "name is neither a standard finalizer name nor is it fully qualified");
    }
}

static void check_managed_fields(struct dv_problems *problems, const struct dv_field_path *up,
                                 const struct dv_api_object_meta *meta)
{
    struct dv_field_path path = dv_path_name(up, "managedFields");

    for (size_t i = 0; i < meta->n_managed_fields; i++) {
        const struct dv_api_managed_fields_entry *entry = &meta->managed_fields[i];
        struct dv_field_path item = dv_path_index(&path, i);

        if (!dv_str_eq(entry->operation, DV_STR("Apply")) &&
            !dv_str_eq(entry->operation, DV_STR("Update")))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, "operation",
                           dv_bad_str(entry->operation), "must be `Apply` or `Update`");
        if (entry->fields_type.n > 0 && !dv_str_eq(entry->fields_type, DV_STR("FieldsV1")))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, "fieldsType",
                           dv_bad_str(entry->fields_type), "must be `FieldsV1`");
        if (entry->manager.n > MANAGER_BYTES_MAX)
            dv_too_long(problems, &item, "manager", MANAGER_BYTES_MAX);
        if (entry->subresource.n > MANAGER_BYTES_MAX)
            dv_too_long(problems, &item, "subresource", MANAGER_BYTES_MAX);
    }
}

/* Checks generateName. Its text is followed by more, so a dash at its end is as good as a
 * letter. */
static void check_generate_name(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                                dv_check_text *check_name)
{
    dv_str base = meta->generate_name;
    struct dv_problems masked = {.arena = problems->arena};

    if (base.n == 0)
        return;
    if (base.n > 1 && base.p[base.n - 1] == '-') {
        char *text = dv_arena_alloc_raw(problems->arena, base.n, 1);

        for (size_t i = 0; i + 2 < base.n; i++)
            text[i] = base.p[i];
        text[base.n - 2] = 'a';
        check_name(&masked, &meta_path, "generateName", (dv_str){text, base.n - 1});
        if (masked.n == 0)
            return;
    }
    check_name(problems, &meta_path, "generateName", base);
}

void dv_check_meta(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                   const struct dv_meta_rules *rules)
{
    const struct dv_field_path *path = &meta_path;

    check_generate_name(problems, meta, rules->check_name);
    if (meta->name.n == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, "name", dv_bad_none(),
                       "name or generateName is required");
    else
        rules->check_name(problems, path, "name", meta->name);
    if (rules->is_namespaced)
        dv_check_required(problems, path, "namespace", meta->namespace, dv_check_dns_label);
    else if (meta->namespace.n > 0)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "namespace", dv_bad_none(),
                       "not allowed on this type");
    if (meta->generation < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "generation",
                       dv_bad_i64(meta->generation), "must be greater than or equal to 0");
    check_labels(problems, path, meta);
    check_annotations(problems, path, meta);
    check_owners(problems, path, meta);
    check_finalizers(problems, path, meta);
    check_managed_fields(problems, path, meta);
    check_finalizer_domains(problems, path, meta);
}

static void check_new_finalizers(struct dv_problems *problems,
                                 const struct dv_api_object_meta *meta,
                                 const struct dv_api_object_meta *old)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str *added = DV_NEW_ARRAY(problems->arena, dv_str, meta->n_finalizers);
    size_t n_added = 0;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < meta->n_finalizers; i++)
        if (!dv_meta_has_finalizer(old, meta->finalizers[i]))
            added[n_added++] = meta->finalizers[i];
    if (n_added == 0)
        return;
    qsort(added, n_added, sizeof(*added), dv_str_compare);
    for (size_t i = 0; i < n_added; i++) {
        dv_buf_add_c(&buf, i > 0 ? ", " : "");
        dv_go_quote(added[i], &buf);
    }
    dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &meta_path, "finalizers", dv_bad_none(),
                   "no new finalizers can be added if the object is being deleted, found new "
                   "finalizers []string{%.*s}",
                   DV_FMT(dv_buf_str(&buf)));
}

static void check_same_time(struct dv_problems *problems, const char *name, struct dv_time time,
                            struct dv_time old)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (time.is_set == old.is_set &&
        (!time.is_set || (time.seconds == old.seconds && time.nanos == old.nanos)))
        return;
    if (time.is_set)
        dv_api_time_print(time, false, &buf);
    dv_immutable(problems, &meta_path, name,
                 time.is_set ? dv_bad_str(dv_buf_str(&buf)) : dv_bad_null());
}

static void check_same_grace(struct dv_problems *problems, const int64_t *grace, const int64_t *old)
{
    if ((grace && old && *grace == *old) || (!grace && !old))
        return;
    dv_immutable(problems, &meta_path, "deletionGracePeriodSeconds",
                 grace ? dv_bad_i64(*grace) : dv_bad_null());
}

void dv_check_meta_update(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                          const struct dv_api_object_meta *old)
{
    const struct {
        const char *name;
        dv_str value;
        dv_str old;
    } fixed[] = {
        {"name",      meta->name,      old->name     },
        {"namespace", meta->namespace, old->namespace},
        {"uid",       meta->uid,       old->uid      },
    };

    if (old->deletion_timestamp.is_set)
        check_new_finalizers(problems, meta, old);
    if (meta->resource_version.n == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &meta_path, "resourceVersion",
                       dv_bad_str(meta->resource_version), "must be specified for an update");
    if (meta->generation < old->generation)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &meta_path, "generation",
                       dv_bad_i64(meta->generation), "must not be decremented");
    for (size_t i = 0; i < DV_COUNT(fixed); i++)
        if (!dv_str_eq(fixed[i].value, fixed[i].old))
            dv_immutable(problems, &meta_path, fixed[i].name, dv_bad_str(fixed[i].value));
    check_same_time(problems, "creationTimestamp", meta->creation_timestamp,
                    old->creation_timestamp);
    check_same_time(problems, "deletionTimestamp", meta->deletion_timestamp,
                    old->deletion_timestamp);
    check_same_grace(problems, meta->deletion_grace_period_seconds,
                     old->deletion_grace_period_seconds);
    check_labels(problems, &meta_path, meta);
    check_annotations(problems, &meta_path, meta);
    check_owners(problems, &meta_path, meta);
    check_managed_fields(problems, &meta_path, meta);
}

void dv_check_kind_meta_update(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                               const struct dv_api_object_meta *old)
{
    dv_check_meta_update(problems, meta, old);
    check_finalizer_domains(problems, &meta_path, meta);
}

void dv_check_labels(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_object_meta *meta)
{
    check_labels(problems, path, meta);
    check_annotations(problems, path, meta);
}

void dv_check_template_meta(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_object_meta *meta)
{
    const struct {
        const char *name;
        bool is_set;
    } refused[] = {
        {"name",                       meta->name.n > 0                           },
        {"generateName",               meta->generate_name.n > 0                  },
        {"namespace",                  meta->namespace.n > 0                      },
        {"selfLink",                   meta->self_link.n > 0                      },
        {"uid",                        meta->uid.n > 0                            },
        {"resourceVersion",            meta->resource_version.n > 0               },
        {"generation",                 meta->generation != 0                      },
        {"creationTimestamp",          meta->creation_timestamp.is_set            },
        {"deletionTimestamp",          meta->deletion_timestamp.is_set            },
        {"deletionGracePeriodSeconds", meta->deletion_grace_period_seconds != NULL},
        {"ownerReferences",            meta->n_owner_references > 0               },
        {"finalizers",                 meta->n_finalizers > 0                     },
        {"managedFields",              meta->n_managed_fields > 0                 },
    };

    check_annotations(problems, path, meta);
    check_labels(problems, path, meta);
    for (size_t i = 0; i < DV_COUNT(refused); i++)
        if (refused[i].is_set)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, refused[i].name, dv_bad_none(),
                           "cannot be set");
}
