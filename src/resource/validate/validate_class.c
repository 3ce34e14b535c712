/* validate_class.c - classes, and rules that taint devices. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/claim_checks.h"

#define CONFIGS_MAX 32u
#define CONDITIONS_MAX 8u

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

static bool has_same_selectors(const struct dv_api_device_class_spec *a,
                               const struct dv_api_device_class_spec *b)
{
    if (a->n_selectors != b->n_selectors)
        return false;
    for (size_t i = 0; i < a->n_selectors; i++)
        if (!dv_message_eq(&dv_message_device_selector, &a->selectors[i], &b->selectors[i]))
            return false;
    return true;
}

static bool has_same_config(const struct dv_api_device_class_spec *a,
                            const struct dv_api_device_class_spec *b)
{
    if (a->n_config != b->n_config)
        return false;
    for (size_t i = 0; i < a->n_config; i++)
        if (!dv_message_eq(&dv_message_device_class_configuration, &a->config[i], &b->config[i]))
            return false;
    return true;
}

static void check_class_spec(struct dv_problems *problems,
                             const struct dv_api_device_class_spec *spec,
                             const struct dv_api_device_class_spec *old)
{
    struct dv_field_path config = dv_path_name(&spec_path, "config");
    bool is_stored = old && has_same_config(spec, old);

    dv_check_selectors(problems, &spec_path, spec->selectors, spec->n_selectors,
                       old && has_same_selectors(spec, old));
    if (spec->n_config > CONFIGS_MAX)
        dv_too_many(problems, &config, NULL, spec->n_config, CONFIGS_MAX);
    for (size_t i = 0; spec->n_config <= CONFIGS_MAX && i < spec->n_config; i++) {
        struct dv_field_path item = dv_path_index(&config, i);

        dv_check_configuration(problems, &item, &spec->config[i].device_configuration, is_stored);
    }
    if (spec->extended_resource_name.p &&
        !dv_is_extended_resource_name(spec->extended_resource_name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "extendedResourceName",
                       dv_bad_str(spec->extended_resource_name),
                       "must be a valid extended resource name");
}

void dv_validate_class(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain_bytes, false};
    const struct dv_api_device_class *class = what->value;
    const struct dv_api_device_class *old = what->old;

    dv_check_meta(problems, &class->metadata, &rules);
    if (old)
        dv_check_kind_meta_update(problems, &class->metadata, &old->metadata);
    check_class_spec(problems, &class->spec, old ? &old->spec : NULL);
}

static void check_rule_spec(struct dv_problems *problems,
                            const struct dv_api_device_taint_rule_spec *spec,
                            const struct dv_api_device_taint_rule_spec *old)
{
    struct dv_field_path path = dv_path_name(&spec_path, "deviceSelector");
    struct dv_field_path taint = dv_path_name(&spec_path, "taint");
    const struct dv_api_device_taint_selector *selector = spec->device_selector;

    if (selector && selector->driver.p)
        dv_check_driver_name(problems, &path, "driver", selector->driver);
    if (selector && selector->pool.p)
        dv_check_pool_name(problems, &path, "pool", selector->pool);
    if (selector && selector->device.p)
        dv_check_dns_label(problems, &path, "device", selector->device);
    dv_check_device_taint(problems, &taint, &spec->taint, old ? &old->taint : NULL);
}

void dv_validate_taint_rule(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_field_path status_path = {.kind = PATH_NAME, .name = "status"};
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    const struct dv_api_device_taint_rule *rule = what->value;
    const struct dv_api_device_taint_rule *old = what->old;
    struct dv_field_path conditions = dv_path_name(&status_path, "conditions");

    if (!old) {
        dv_check_meta(problems, &rule->metadata, &rules);
        check_rule_spec(problems, &rule->spec, NULL);
        return;
    }
    dv_check_kind_meta_update(problems, &rule->metadata, &old->metadata);
    if (what->operation == DV_UPDATE) {
        check_rule_spec(problems, &rule->spec, &old->spec);
        return;
    }
    dv_check_conditions(problems, &conditions, rule->status.conditions, rule->status.n_conditions);
    if (rule->status.n_conditions > CONDITIONS_MAX)
        dv_too_many(problems, &conditions, NULL, rule->status.n_conditions, CONDITIONS_MAX);
}
