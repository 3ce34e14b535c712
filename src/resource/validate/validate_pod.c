/* validate_pod.c - pods: their claims, their containers, and what places them. Their volumes are
 * in validate_volumes.c. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/map.h"
#include "resource/references.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"

/* -- Claims --------------------------------------------------------------------------------- */

static void check_claim(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_pod_resource_claim *claim, bool is_repeated)
{
    bool has_claim = claim->resource_claim_name.p != NULL;
    bool has_template = claim->resource_claim_template_name.p != NULL;

    if (claim->name.n == 0)
        dv_required(problems, path, "name");
    else if (is_repeated)
        dv_problem_add(problems, DV_PROBLEM_DUPLICATE, path, "name", dv_bad_str(claim->name), "%s",
                       "");
    else
        dv_check_dns_label(problems, path, "name", claim->name);
    if (has_claim == has_template)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL,
                       dv_bad_message(&dv_message_pod_resource_claim, claim, problems->arena), "%s",
                       has_claim ? "at most one of `resourceClaimName` or "
                                   "`resourceClaimTemplateName` may be specified"
                                 : "must specify one of: `resourceClaimName`, "
                                   "`resourceClaimTemplateName`");
    if (has_claim)
        dv_check_dns_subdomain(problems, path, "resourceClaimName", claim->resource_claim_name);
    if (has_template)
        dv_check_dns_subdomain(problems, path, "resourceClaimTemplateName",
                               claim->resource_claim_template_name);
}

/* Checks the claims, and fills `claims`, by name. */
static void check_claims(struct dv_problems *problems, const struct dv_field_path *spec_path,
                         const struct dv_api_object_meta *meta, const struct dv_api_pod_spec *spec,
                         struct dv_map *claims)
{
    struct dv_field_path path = dv_path_name(spec_path, "resourceClaims");

    if (spec->n_resource_claims > 0 &&
        dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_MIRROR_ANNOTATION)))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &path, NULL, dv_bad_none(),
                       "static pods do not support resource claims");
    for (size_t i = 0; i < spec->n_resource_claims; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        struct dv_api_pod_resource_claim *claim = &spec->resource_claims[i];

        check_claim(problems, &item, claim, dv_map_set(claims, claim->name, claim) != NULL);
    }
}

/* -- Containers ----------------------------------------------------------------------------- */

/* What a container may refer to, by name. */
struct known {
    struct dv_map claims;
    struct dv_map volumes;
};

static void check_container(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_container *container, const struct known *known)
{
    struct dv_field_path resources = dv_path_name(path, "resources");

    dv_check_required(problems, path, "name", container->name, dv_check_dns_label);
    if (container->image.n == 0)
        dv_required(problems, path, "image");
    dv_check_mounts(problems, path, container, &known->volumes);
    dv_check_resources(problems, &resources, &container->resources, &known->claims);
}

/* Checks containers. `names` are those that are taken, and these are added. */
static void check_containers(struct dv_problems *problems, const struct dv_field_path *path,
                             struct dv_api_container *containers, size_t n, struct dv_map *names,
                             const struct known *known)
{
    for (size_t i = 0; i < n; i++) {
        dv_str name = containers[i].name;
        struct dv_field_path item = dv_path_index(path, i);

        check_container(problems, &item, &containers[i], known);
        if (name.n > 0 && dv_map_set(names, name, &containers[i]))
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &item, "name", dv_bad_str(name), "%s",
                           "");
    }
}

static void check_images(struct dv_problems *problems, const struct dv_field_path *spec_path,
                         const char *name, const struct dv_api_container *containers, size_t n)
{
    struct dv_field_path path = dv_path_name(spec_path, name);

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);
        dv_str image = containers[i].image;

        if (dv_str_trim(image).n != image.n)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, "image", dv_bad_str(image),
                           "must not have leading or trailing whitespace");
    }
}

static void check_all_containers(struct dv_problems *problems,
                                 const struct dv_field_path *spec_path,
                                 const struct dv_api_pod_spec *spec, const struct known *known)
{
    DV_CLEANUP(dv_map_fini) struct dv_map names;
    struct dv_field_path path = dv_path_name(spec_path, "containers");
    struct dv_field_path init_path = dv_path_name(spec_path, "initContainers");

    dv_map_init(&names);
    if (spec->n_containers == 0)
        dv_required(problems, &path, NULL);
    check_containers(problems, &path, spec->containers, spec->n_containers, &names, known);
    check_containers(problems, &init_path, spec->init_containers, spec->n_init_containers, &names,
                     known);
}

/* -- The rest of the spec ------------------------------------------------------------------- */

static void check_choice(struct dv_problems *problems, const struct dv_field_path *spec_path,
                         const char *name, dv_str value, const dv_str *supported,
                         size_t n_supported)
{
    if (value.n == 0)
        dv_required(problems, spec_path, name);
    else
        dv_check_one_of(problems, spec_path, name, value, supported, n_supported);
}

static void check_policies(struct dv_problems *problems, const struct dv_field_path *spec_path,
                           const struct dv_api_pod_spec *spec)
{
    static const dv_str restart[] = {
        DV_STR_INIT("Always"),
        DV_STR_INIT("OnFailure"),
        DV_STR_INIT("Never"),
    };
    static const dv_str dns[] = {
        DV_STR_INIT("ClusterFirstWithHostNet"),
        DV_STR_INIT("ClusterFirst"),
        DV_STR_INIT("Default"),
        DV_STR_INIT("None"),
    };

    check_choice(problems, spec_path, "restartPolicy", spec->restart_policy, restart,
                 DV_COUNT(restart));
    check_choice(problems, spec_path, "dnsPolicy", spec->dns_policy, dns, DV_COUNT(dns));
}

static void check_node_labels(struct dv_problems *problems, const struct dv_field_path *spec_path,
                              const struct dv_api_pod_spec *spec)
{
    for (size_t i = 0; i < spec->n_node_selector; i++) {
        dv_check_label_name(problems, spec_path, "nodeSelector", spec->node_selector[i].key);
        dv_check_label_value(problems, spec_path, "nodeSelector", spec->node_selector[i].value);
    }
}

static void check_names(struct dv_problems *problems, const struct dv_field_path *spec_path,
                        const struct dv_api_pod_spec *spec)
{
    const struct {
        const char *name;
        dv_str value;
        dv_check_text *check;
    } names[] = {
        {"serviceAccountName", spec->service_account_name, dv_check_dns_subdomain},
        {"nodeName",           spec->node_name,            dv_check_dns_subdomain},
        {"hostname",           spec->hostname,             dv_check_dns_label    },
        {"subdomain",          spec->subdomain,            dv_check_dns_label    },
        {"priorityClassName",  spec->priority_class_name,  dv_check_dns_subdomain},
        {"runtimeClassName",   spec->runtime_class_name,   dv_check_dns_subdomain},
    };

    for (size_t i = 0; i < DV_COUNT(names); i++)
        if (names[i].value.n > 0)
            names[i].check(problems, spec_path, names[i].name, names[i].value);
}

static void check_deadline(struct dv_problems *problems, const struct dv_field_path *spec_path,
                           const struct dv_api_pod_spec *spec)
{
    const int64_t *deadline = spec->active_deadline_seconds;

    if (deadline && (*deadline < 1 || *deadline > INT32_MAX))
        dv_problem_add(problems, DV_PROBLEM_INVALID, spec_path, "activeDeadlineSeconds",
                       dv_bad_i64(*deadline), "must be between 1 and %d, inclusive", INT32_MAX);
}

static void check_gates(struct dv_problems *problems, const struct dv_field_path *spec_path,
                        const struct dv_api_pod_spec *spec)
{
    struct dv_field_path path = dv_path_name(spec_path, "schedulingGates");

    for (size_t i = 0; i < spec->n_scheduling_gates; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_label_name(problems, &item, NULL, spec->scheduling_gates[i].name);
    }
    if (spec->n_scheduling_gates > 0)
        dv_check_unique(problems, &path, NULL, &spec->scheduling_gates[0].name,
                        spec->n_scheduling_gates, sizeof(spec->scheduling_gates[0]));
}

/* A mirror stands for a pod that a node has: it is on that node. */
static void check_mirror(struct dv_problems *problems, const struct dv_api_pod *pod)
{
    static const struct dv_field_path metadata = {.kind = PATH_NAME, .name = "metadata"};
    struct dv_field_path annotations = dv_path_name(&metadata, "annotations");
    struct dv_field_path key = dv_path_key(&annotations, DV_STR(DV_MIRROR_ANNOTATION));
    const struct dv_str_entry *mirror = dv_entry_find(
        pod->metadata.annotations, pod->metadata.n_annotations, DV_STR(DV_MIRROR_ANNOTATION));

    if (mirror && pod->spec.node_name.n == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &key, NULL, dv_bad_str(mirror->value),
                       "must set spec.nodeName if mirror pod annotation is set");
}

/* Checks the spec of a pod, or of the template for some, which is at `path`. */
static void check_spec(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_object_meta *meta, const struct dv_api_pod_spec *spec)
{
    struct dv_field_path tolerations = dv_path_name(path, "tolerations");
    struct dv_field_path volumes = dv_path_name(path, "volumes");
    struct dv_field_path affinity = dv_path_name(path, "affinity");
    struct dv_field_path spread = dv_path_name(path, "topologySpreadConstraints");
    struct known known;

    dv_map_init(&known.claims);
    dv_map_init(&known.volumes);
    dv_check_volumes(problems, &volumes, spec->volumes, spec->n_volumes, &known.volumes);
    check_claims(problems, path, meta, spec, &known.claims);
    check_all_containers(problems, path, spec, &known);
    dv_map_fini(&known.claims);
    dv_map_fini(&known.volumes);
    check_policies(problems, path, spec);
    check_node_labels(problems, path, spec);
    if (spec->affinity)
        dv_check_affinity(problems, &affinity, spec->affinity);
    check_gates(problems, path, spec);
    dv_check_spread(problems, &spread, spec->topology_spread_constraints,
                    spec->n_topology_spread_constraints);
    check_names(problems, path, spec);
    check_deadline(problems, path, spec);
    dv_check_tolerations(problems, &tolerations, spec->tolerations, spec->n_tolerations);
    check_images(problems, path, "containers", spec->containers, spec->n_containers);
    check_images(problems, path, "initContainers", spec->init_containers, spec->n_init_containers);
}

void dv_check_pod_template(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_pod_template_spec *template)
{
    struct dv_field_path spec = dv_path_name(path, "spec");

    dv_check_labels(problems, path, &template->metadata);
    check_spec(problems, &spec, &template->metadata, &template->spec);
    if (template->spec.n_ephemeral_containers > 0)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec, "ephemeralContainers", dv_bad_none(),
                       "ephemeral containers not allowed in pod template");
}

static void check_all(struct dv_problems *problems, const struct dv_api_pod *pod)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

    dv_check_meta(problems, &pod->metadata, &rules);
    check_mirror(problems, pod);
    check_spec(problems, &spec_path, &pod->metadata, &pod->spec);
}

/* Whether a pod is a mirror is decided when it is created, and cannot change. */
static void check_mirror_update(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                                const struct dv_api_object_meta *old)
{
    static const struct dv_field_path metadata = {.kind = PATH_NAME, .name = "metadata"};
    struct dv_field_path annotations = dv_path_name(&metadata, "annotations");
    struct dv_field_path key = dv_path_key(&annotations, DV_STR(DV_MIRROR_ANNOTATION));
    const struct dv_str_entry *now =
        dv_entry_find(meta->annotations, meta->n_annotations, DV_STR(DV_MIRROR_ANNOTATION));
    const struct dv_str_entry *before =
        dv_entry_find(old->annotations, old->n_annotations, DV_STR(DV_MIRROR_ANNOTATION));

    if (before && !(now && dv_str_eq(now->value, before->value)))
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &key, NULL, dv_bad_none(),
                       "may not remove or update mirror pod annotation");
    if (now && !before)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &key, NULL, dv_bad_none(),
                       "may not add mirror pod annotation");
}

void dv_validate_pod(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_pod *pod = what->value;
    const struct dv_api_pod *old = what->old;

    switch (what->operation) {
    case DV_CREATE:
        check_all(problems, pod);
        return;
    case DV_UPDATE:
        dv_check_kind_meta_update(problems, &pod->metadata, &old->metadata);
        check_all(problems, pod);
        check_mirror_update(problems, &pod->metadata, &old->metadata);
        dv_check_pod_update(problems, pod, old);
        return;
    case DV_UPDATE_STATUS:
        dv_check_kind_meta_update(problems, &pod->metadata, &old->metadata);
        check_mirror_update(problems, &pod->metadata, &old->metadata);
        dv_check_pod_status(problems, pod, old);
        return;
    }
}
