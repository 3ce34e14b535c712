/* validate_claim.c - what claims and templates ask for. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/claim_checks.h"

#define REQUESTS_MAX 32u
#define CONSTRAINTS_MAX 32u
#define CONFIGS_MAX 32u
#define SUBREQUESTS_MAX 8u
#define PARAMETERS_BYTES_MAX 10240u

#define REFERENCE_TEXT                                                                             \
    "must be the name of a request in the claim or the name of a request and a subrequest "        \
    "separated by '/'"

static void check_mode(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_exact_device_request *demand)
{
    static const dv_str modes[] = {DV_STR_INIT("All"), DV_STR_INIT("ExactCount")};

    if (dv_str_eq(demand->allocation_mode, DV_STR("All"))) {
        if (demand->count != 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, "count", dv_bad_i64(demand->count),
                           "must not be specified when allocationMode is 'All'");
    } else if (dv_str_eq(demand->allocation_mode, DV_STR("ExactCount"))) {
        if (demand->count <= 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, "count", dv_bad_i64(demand->count),
                           "must be greater than zero");
    } else {
        dv_not_supported(problems, path, "allocationMode", demand->allocation_mode, modes,
                         DV_COUNT(modes));
    }
}

static void check_toleration(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_device_toleration *toleration)
{
    static const dv_str operators[] = {DV_STR_INIT("Equal"), DV_STR_INIT("Exists")};

    if (toleration->key.n > 0)
        dv_check_label_name(problems, path, "key", toleration->key);
    if (dv_str_eq(toleration->operator, DV_STR("Exists"))) {
        if (toleration->value.n > 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, "value",
                           dv_bad_str(toleration->value), "must be empty for operator `Exists`");
    } else if (dv_str_eq(toleration->operator, DV_STR("Equal"))) {
        dv_check_label_value(problems, path, "value", toleration->value);
    } else if (toleration->operator.n == 0) {
        dv_required(problems, path, "operator");
    } else {
        dv_not_supported(problems, path, "operator", toleration->operator, operators,
                         DV_COUNT(operators));
    }
    if (toleration->effect.n > 0)
        dv_check_taint_effect(problems, path, toleration->effect);
}

static void check_demand(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_exact_device_request *demand, bool is_stored)
{
    struct dv_field_path tolerations = dv_path_name(path, "tolerations");

    dv_check_required(problems, path, "deviceClassName", demand->device_class_name,
                      dv_check_dns_subdomain);
    dv_check_selectors(problems, path, demand->selectors, demand->n_selectors, is_stored);
    check_mode(problems, path, demand);
    for (size_t i = 0; i < demand->n_tolerations; i++) {
        struct dv_field_path item = dv_path_index(&tolerations, i);

        check_toleration(problems, &item, &demand->tolerations[i]);
    }
}

static void check_subrequests(struct dv_problems *problems, const struct dv_field_path *up,
                              const struct dv_api_device_request *request, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "firstAvailable");

    if (request->n_first_available > SUBREQUESTS_MAX) {
        dv_too_many(problems, &path, NULL, request->n_first_available, SUBREQUESTS_MAX);
        return;
    }
    for (size_t i = 0; i < request->n_first_available; i++) {
        const struct dv_api_device_sub_request *sub = &request->first_available[i];
        const struct dv_api_exact_device_request demand = dv_alternative_as_request(sub);
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_dns_label(problems, &item, "name", sub->name);
        check_demand(problems, &item, &demand, is_stored);
    }
    dv_check_unique(problems, &path, NULL, &request->first_available[0].name,
                    request->n_first_available, sizeof(request->first_available[0]));
}

static void check_exactly(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_exact_device_request *exactly, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "exactly");

    check_demand(problems, &path, exactly, is_stored);
}

static void check_request(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_device_request *request, bool is_stored)
{
    dv_check_dns_label(problems, path, "name", request->name);
    if (request->exactly && request->n_first_available > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_null(),
                       "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                       "fields are set");
    else if (request->n_first_available > 0)
        check_subrequests(problems, path, request, is_stored);
    else if (request->exactly)
        check_exactly(problems, path, request->exactly, is_stored);
    else
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(),
                       "exactly one of `exactly` or `firstAvailable` is required");
}

static void check_requests(struct dv_problems *problems, const struct dv_field_path *up,
                           const struct dv_api_device_claim *claim, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "requests");

    if (claim->n_requests > REQUESTS_MAX) {
        dv_too_many(problems, &path, NULL, claim->n_requests, REQUESTS_MAX);
        return;
    }
    for (size_t i = 0; i < claim->n_requests; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_request(problems, &item, &claim->requests[i], is_stored);
    }
    if (claim->n_requests > 0)
        dv_check_unique(problems, &path, NULL, &claim->requests[0].name, claim->n_requests,
                        sizeof(claim->requests[0]));
}

static bool has_subrequest(const struct dv_api_device_request *request, dv_str name)
{
    for (size_t i = 0; i < request->n_first_available; i++)
        if (dv_str_eq(request->first_available[i].name, name))
            return true;
    return false;
}

/* Whether the claim has the request. Of requests with one name the last counts, as the reference
 * fills a map in their order. */
static bool has_request(const struct dv_api_device_claim *claim, dv_str reference)
{
    size_t slash = dv_str_find_char(reference, '/');
    dv_str name = dv_str_slice(reference, 0, slash);

    for (size_t i = claim->n_requests; i > 0; i--) {
        const struct dv_api_device_request *request = &claim->requests[i - 1];

        if (dv_str_eq(request->name, name))
            return slash == reference.n ||
                   has_subrequest(request, dv_str_slice(reference, slash + 1, reference.n));
    }
    return false;
}

void dv_check_request_reference(struct dv_problems *problems, const struct dv_field_path *path,
                                const char *name, dv_str reference,
                                const struct dv_api_device_claim *claim)
{
    size_t slash = dv_str_find_char(reference, '/');
    dv_str sub = dv_str_slice(reference, slash + 1, reference.n);
    bool is_known = dv_str_find_char(sub, '/') == sub.n;

    if (is_known) {
        dv_check_dns_label(problems, path, name, dv_str_slice(reference, 0, slash));
        if (slash < reference.n)
            dv_check_dns_label(problems, path, name, sub);
        is_known = has_request(claim, reference);
    }
    if (!is_known)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(reference), "%s",
                       REFERENCE_TEXT);
}

void dv_check_request_references(struct dv_problems *problems, const struct dv_field_path *up,
                                 const dv_str *references, size_t n,
                                 const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(up, "requests");

    if (n > REQUESTS_MAX) {
        dv_too_many(problems, &path, NULL, n, REQUESTS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_request_reference(problems, &item, NULL, references[i], claim);
    }
    dv_check_unique(problems, &path, NULL, references, n, sizeof(*references));
}

void dv_check_configuration(struct dv_problems *problems, const struct dv_field_path *up,
                            const struct dv_api_device_configuration *configuration, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "opaque");

    if (!configuration->opaque) {
        dv_required(problems, &path, NULL);
        return;
    }
    dv_check_driver_name(problems, &path, "driver", configuration->opaque->driver);
    dv_check_raw_object(problems, &path, "parameters", configuration->opaque->parameters,
                        PARAMETERS_BYTES_MAX, is_stored);
}

static void check_constraint(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_device_constraint *constraint,
                             const struct dv_api_device_claim *claim)
{
    dv_check_request_references(problems, path, constraint->requests, constraint->n_requests,
                                claim);
    if (constraint->match_attribute.p)
        dv_check_full_name(problems, path, "matchAttribute", constraint->match_attribute);
    else if (constraint->distinct_attribute.p)
        dv_check_full_name(problems, path, "distinctAttribute", constraint->distinct_attribute);
    else
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(),
                       "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, "
                       "but multiple fields are set");
}

static void check_constraints(struct dv_problems *problems, const struct dv_field_path *up,
                              const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(up, "constraints");

    if (claim->n_constraints > CONSTRAINTS_MAX) {
        dv_too_many(problems, &path, NULL, claim->n_constraints, CONSTRAINTS_MAX);
        return;
    }
    for (size_t i = 0; i < claim->n_constraints; i++) {
        struct dv_field_path item = dv_path_index(&path, i);

        check_constraint(problems, &item, &claim->constraints[i], claim);
    }
}

static void check_configs(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_device_claim *claim, bool is_stored)
{
    struct dv_field_path path = dv_path_name(up, "config");

    if (claim->n_config > CONFIGS_MAX) {
        dv_too_many(problems, &path, NULL, claim->n_config, CONFIGS_MAX);
        return;
    }
    for (size_t i = 0; i < claim->n_config; i++) {
        const struct dv_api_device_claim_configuration *config = &claim->config[i];
        struct dv_field_path item = dv_path_index(&path, i);

        dv_check_request_references(problems, &item, config->requests, config->n_requests, claim);
        dv_check_configuration(problems, &item, &config->device_configuration, is_stored);
    }
}

static void check_spec(struct dv_problems *problems, const struct dv_field_path *spec,
                       const struct dv_api_device_claim *claim)
{
    struct dv_field_path path = dv_path_name(spec, "devices");

    check_requests(problems, &path, claim, false);
    check_constraints(problems, &path, claim);
    check_configs(problems, &path, claim, false);
}

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};
static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};

static void check_same(struct dv_problems *problems, const struct dv_message *message,
                       const void *spec, const void *old)
{
    if (!dv_message_eq(message, spec, old))
        dv_immutable(problems, &spec_path, NULL, dv_bad_message(message, spec, problems->arena));
}

static void create_claim(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_resource_claim *claim = what->value;

    dv_check_meta(problems, &claim->metadata, &rules);
    check_spec(problems, &spec_path, &claim->spec.devices);
}

void dv_validate_claim(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_resource_claim *claim = what->value;
    const struct dv_api_resource_claim *old = what->old;

    switch (what->operation) {
    case DV_CREATE:
        create_claim(problems, what);
        return;
    case DV_UPDATE:
        dv_check_meta(problems, &claim->metadata, &rules);
        dv_check_kind_meta_update(problems, &claim->metadata, &old->metadata);
        check_same(problems, &dv_message_resource_claim_spec, &claim->spec, &old->spec);
        return;
    case DV_UPDATE_STATUS:
        dv_check_kind_meta_update(problems, &claim->metadata, &old->metadata);
        dv_check_claim_status(problems, claim, old);
        return;
    }
}

void dv_validate_claim_before_update(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_resource_claim *claim = what->value;
    const struct dv_api_resource_claim *old = what->old;

    if (what->operation != DV_UPDATE)
        return;
    dv_check_meta(problems, &claim->metadata, &rules);
    /* A spec that has not changed was accepted when it was stored, perhaps by older rules. */
    if (!dv_message_eq(&dv_message_resource_claim_spec, &claim->spec, &old->spec))
        check_spec(problems, &spec_path, &claim->spec.devices);
}

static void create_template(struct dv_problems *problems,
                            const struct dv_api_resource_claim_template *template)
{
    struct dv_field_path meta = dv_path_name(&spec_path, "metadata");
    struct dv_field_path spec = dv_path_name(&spec_path, "spec");

    dv_check_meta(problems, &template->metadata, &rules);
    dv_check_template_meta(problems, &meta, &template->spec.metadata);
    check_spec(problems, &spec, &template->spec.spec.devices);
}

void dv_validate_template(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_resource_claim_template *template = what->value;
    const struct dv_api_resource_claim_template *old = what->old;

    if (what->operation == DV_CREATE) {
        create_template(problems, template);
        return;
    }
    dv_check_kind_meta_update(problems, &template->metadata, &old->metadata);
    check_same(problems, &dv_message_resource_claim_template_spec, &template->spec, &old->spec);
}

void dv_validate_template_before_update(struct dv_problems *problems,
                                        const struct dv_validation *what)
{
    const struct dv_api_resource_claim_template *template = what->value;
    const struct dv_api_resource_claim_template *old = what->old;

    if (dv_message_eq(&dv_message_resource_claim_template_spec, &template->spec, &old->spec))
        dv_check_meta(problems, &template->metadata, &rules);
    else
        create_template(problems, template);
}
