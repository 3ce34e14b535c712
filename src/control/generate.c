/* generate.c - which claims a pod lacks, and what they look like: the names, the objects, and the
 * patch of the pod's status. Names and texts are the reference's. Used by pod_sync.c. */
#include "control/generate.h"

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/map.h"
#include "control/uses.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "json/json.h"

/* The longest base of a generated name, to which five random characters are added: a name has at
 * most 63. The reference counts a dash that it then leaves out, hence 57 and not 58. */
#define BASE_BYTES_MAX 57u

/* ---- the claim ---- */

dv_str dv_control_generate_name(dv_str pod, dv_str entry, struct dv_arena *arena)
{
    size_t n = pod.n + 1 + entry.n + 1;

    if (n <= BASE_BYTES_MAX)
        return dv_str_concat((const dv_str[]){pod, DV_STR("-"), entry, DV_STR("-")}, 4, arena);
    pod = dv_str_slice(pod, 0, pod.n * BASE_BYTES_MAX / n);
    entry = dv_str_slice(entry, 0, entry.n * BASE_BYTES_MAX / n);
    while (pod.n > 0 && pod.p[pod.n - 1] == '.')
        /* ".-" cannot be in a name: with it the server would refuse the claim for ever, as happens
         * to the reference. */
        pod.n--;
    return dv_str_printf(arena, "%.*s-%.*s", DV_FMT(pod), DV_FMT(entry));
}

dv_str dv_control_claim_name(dv_str generate_name, dv_str pod_uid, dv_str entry, unsigned number,
                             struct dv_arena *arena)
{
    /* The letters that servers use for generated names: without vowels, so that no words come out,
     * and without what looks alike. */
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    dv_str text = dv_str_printf(arena, "%.*s/%.*s/%u", DV_FMT(pod_uid), DV_FMT(entry), number);
    /* FNV-1a and not the seeded hash of maps: the name must be the same in every process. */
    uint64_t hash = 0xcbf29ce484222325u;
    char suffix[5];

    for (size_t i = 0; i < text.n; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * 0x100000001b3u;
    hash ^= hash >> 32; /* the low bits alone, of which the name is made, are not mixed enough */
    for (size_t i = 0; i < sizeof(suffix); i++, hash /= sizeof(letters) - 1)
        suffix[i] = letters[hash % (sizeof(letters) - 1)];
    return dv_str_concat(
        (const dv_str[]){
            generate_name, {suffix, sizeof(suffix)}
    },
        2, arena);
}

/* The claim for an entry; refers to the pod and the template. */
static struct dv_api_resource_claim *
build_claim(const struct dv_api_pod *pod, dv_str entry,
            const struct dv_api_resource_claim_template *template, struct dv_arena *arena)
{
    static const bool yes = true;
    const struct dv_api_object_meta *like = &template->spec.metadata;
    struct dv_api_resource_claim *claim = DV_NEW(arena, struct dv_api_resource_claim);
    struct dv_api_owner_reference *owner = DV_NEW(arena, struct dv_api_owner_reference);

    *owner = (struct dv_api_owner_reference){.api_version = DV_STR("v1"),
                                             .kind = DV_STR("Pod"),
                                             .name = pod->metadata.name,
                                             .uid = pod->metadata.uid,
                                             .controller = &yes};
    claim->metadata = (struct dv_api_object_meta){
        .generate_name = dv_control_generate_name(pod->metadata.name, entry, arena),
        .namespace = pod->metadata.namespace,
        .labels = like->labels,
        .n_labels = like->n_labels,
        .annotations = like->annotations,
        .n_annotations = like->n_annotations,
        .owner_references = owner,
        .n_owner_references = 1};
    dv_entry_set(&claim->metadata.annotations, &claim->metadata.n_annotations,
                 DV_STR(DV_CLAIM_ENTRY_ANNOTATION), entry, arena);
    claim->spec = template->spec.spec;
    return claim;
}

/* ---- what is to be done ---- */

static bool check_template(const struct dv_api_resource_claim_template *template,
                           const struct dv_control_gates *gates, struct dv_err *err)
{
    const struct dv_api_device_claim *devices = &template->spec.spec.devices;

    if (!gates->admin_access && dv_control_wants_admin(devices))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "admin access is requested, but the feature is disabled");
    if (!gates->prioritized_list && dv_control_wants_list(devices))
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "a prioritized list is requested, but the feature is disabled");
    return true;
}

/* The template of the entry, which allows what it asks for. */
static const struct dv_api_resource_claim_template *
template_of(const struct dv_api_pod *pod, const struct dv_api_pod_resource_claim *entry,
            const struct dv_control_lookup *lookup, const struct dv_control_gates *gates,
            struct dv_err *err)
{
    dv_str name = entry->resource_claim_template_name;
    const struct dv_api_resource_claim_template *template =
        lookup->template(lookup->ctx, pod->metadata.namespace, name);

    if (!template) {
        (void)dv_fail(err, DV_NOT_FOUND, "resource claim template \"%.*s\" not found",
                      DV_FMT(name));
        return NULL;
    }
    if (!check_template(template, gates, err)) {
        (void)dv_wrap(err, "resource claim template \"%.*s\"", DV_FMT(name));
        return NULL;
    }
    return template;
}

struct dv_api_resource_claim *dv_control_new_claim(const struct dv_api_pod *pod,
                                                   const struct dv_api_pod_resource_claim *entry,
                                                   const struct dv_control_lookup *lookup,
                                                   const struct dv_control_gates *gates,
                                                   struct dv_arena *arena, struct dv_err *err)
{
    const struct dv_api_resource_claim_template *template =
        template_of(pod, entry, lookup, gates, err);
    struct dv_api_resource_claim *claim;

    if (!template)
        return NULL;
    claim = DV_NEW(arena, struct dv_api_resource_claim);
    dv_message_copy(&dv_message_resource_claim, build_claim(pod, entry->name, template, arena),
                    arena, claim);
    return claim;
}

static bool plan_entry(const struct dv_api_pod *pod, const struct dv_map *statuses,
                       const struct dv_api_pod_resource_claim *spec,
                       const struct dv_control_lookup *lookup, const struct dv_control_gates *gates,
                       struct dv_arena *arena, struct dv_entry_plan *entry, struct dv_err *err)
{
    dv_str namespace = pod->metadata.namespace;
    const struct dv_api_resource_claim *claim = NULL;
    enum dv_use use = dv_control_use(statuses, spec, &entry->claim);

    entry->name = spec->name;
    entry->is_generated = use == DV_USE_GENERATED || use == DV_USE_NOT_YET;
    if (!entry->is_generated)
        return true;
    if (use == DV_USE_GENERATED)
        claim = lookup->claim(lookup->ctx, namespace, entry->claim);
    if (claim && dv_control_is_owned_by(&claim->metadata, pod->metadata.uid))
        return true;
    claim = lookup->generated(lookup->ctx, namespace, pod->metadata.uid, spec->name);
    if (claim) {
        entry->step = DV_ENTRY_ADOPT;
        entry->claim = dv_str_copy(claim->metadata.name, arena);
        return true;
    }
    entry->claim = DV_STR_NONE;
    entry->step = DV_ENTRY_STUCK;
    if (!template_of(pod, spec, lookup, gates, err))
        return false;
    entry->step = DV_ENTRY_CREATE;
    return true;
}

void dv_control_plan_pod(const struct dv_api_pod *pod, const struct dv_control_lookup *lookup,
                         const struct dv_control_gates *gates, struct dv_arena *arena,
                         struct dv_pod_plan *plan)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    size_t n = pod->spec.n_resource_claims;

    dv_pod_index_claim_statuses(pod, &statuses);
    *plan = (struct dv_pod_plan){.entries = DV_NEW_ARRAY(arena, struct dv_entry_plan, n)};
    while (plan->n_entries < n && !plan->is_stuck) {
        size_t i = plan->n_entries++;

        plan->is_stuck = !plan_entry(pod, &statuses, &pod->spec.resource_claims[i], lookup, gates,
                                     arena, &plan->entries[i], &plan->err);
    }
}

/* ---- the pod's status ---- */

static void set_text(struct dv_json *object, const char *key, dv_str value, struct dv_arena *arena)
{
    dv_json_set(object, dv_str_from_c(key), dv_json_new_str(value, arena), arena);
}

/* Makes an index of the entries that have a new claim, by name. Of equal names the first counts. */
static void index_new(const struct dv_pod_plan *plan, struct dv_map *by_name)
{
    dv_map_init(by_name);
    for (size_t i = plan->n_entries; i > 0; i--) {
        struct dv_entry_plan *entry = &plan->entries[i - 1];

        if (entry->is_generated && entry->step != DV_ENTRY_KEEP && entry->claim.n > 0)
            (void)dv_map_set(by_name, entry->name, entry);
    }
}

static bool has_status(const struct dv_map *statuses, const struct dv_entry_plan *entry)
{
    const struct dv_api_pod_resource_claim_status *status = dv_map_get(statuses, entry->name);

    return status && dv_str_eq(status->resource_claim_name, entry->claim);
}

bool dv_control_claim_statuses(const struct dv_api_pod *pod, const struct dv_pod_plan *plan,
                               struct dv_arena *arena, struct dv_api_pod_status *status)
{
    DV_CLEANUP(dv_map_fini) struct dv_map statuses = {0};
    DV_CLEANUP(dv_map_fini) struct dv_map news = {0};
    const struct dv_api_pod_status *old = &pod->status;
    struct dv_api_pod_resource_claim_status *all =
        DV_NEW_ARRAY(arena, struct dv_api_pod_resource_claim_status,
                     old->n_resource_claim_statuses + plan->n_entries);
    bool is_change = false;
    size_t n = 0;

    dv_pod_index_claim_statuses(pod, &statuses);
    index_new(plan, &news);
    for (size_t i = 0; i < old->n_resource_claim_statuses; i++)
        if (!dv_map_get(&news, old->resource_claim_statuses[i].name))
            all[n++] = old->resource_claim_statuses[i];
    for (size_t i = 0; i < plan->n_entries; i++) {
        const struct dv_entry_plan *found = dv_map_get(&news, plan->entries[i].name);

        if (found != &plan->entries[i])
            continue;
        all[n++] = (struct dv_api_pod_resource_claim_status){.name = found->name,
                                                             .resource_claim_name = found->claim};
        is_change = is_change || !has_status(&statuses, found);
    }
    if (!is_change)
        return false;
    status->resource_claim_statuses = all;
    status->n_resource_claim_statuses = n;
    return true;
}

struct dv_json *dv_control_claim_patch(const struct dv_api_pod *pod,
                                       const struct dv_api_pod_status *status,
                                       struct dv_arena *arena)
{
    struct dv_json *patch = dv_json_new_object(arena);
    struct dv_json *meta = dv_json_new_object(arena);
    struct dv_json *own = dv_json_new_object(arena);
    struct dv_json *list = dv_json_new_array(arena);

    for (size_t i = 0; i < status->n_resource_claim_statuses; i++) {
        const struct dv_api_pod_resource_claim_status *one = &status->resource_claim_statuses[i];
        struct dv_json *item = dv_json_new_object(arena);

        set_text(item, "name", one->name, arena);
        if (one->resource_claim_name.p) /* otherwise no claim is needed */
            set_text(item, "resourceClaimName", one->resource_claim_name, arena);
        dv_json_append(list, item);
    }
    set_text(patch, "apiVersion", DV_STR("v1"), arena);
    set_text(patch, "kind", DV_STR("Pod"), arena);
    set_text(meta, "name", pod->metadata.name, arena);
    set_text(meta, "namespace", pod->metadata.namespace, arena);
    /* The server refuses the patch for a pod that took the name meanwhile. */
    set_text(meta, "uid", pod->metadata.uid, arena);
    dv_json_set(patch, DV_STR("metadata"), meta, arena);
    dv_json_set(own, DV_STR("resourceClaimStatuses"), list, arena);
    dv_json_set(patch, DV_STR("status"), own, arena);
    return patch;
}

struct dv_api_resource_claim *dv_control_reserve(const struct dv_api_resource_claim *claim,
                                                 const struct dv_api_pod *pod,
                                                 struct dv_arena *arena)
{
    struct dv_api_resource_claim *copy = DV_NEW(arena, struct dv_api_resource_claim);
    size_t n = claim->status.n_reserved_for;
    struct dv_api_resource_claim_consumer_reference *all =
        DV_NEW_ARRAY(arena, struct dv_api_resource_claim_consumer_reference, n + 1);

    *copy = *claim;
    if (n > 0)
        memcpy(all, claim->status.reserved_for, n * sizeof(all[0]));
    all[n] = (struct dv_api_resource_claim_consumer_reference){
        .resource = DV_STR("pods"), .name = pod->metadata.name, .uid = pod->metadata.uid};
    copy->status.reserved_for = all;
    copy->status.n_reserved_for = n + 1;
    return copy;
}
