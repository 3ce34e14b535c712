/* checks.h - the rules that many fields share. Each adds what is wrong with `value` to `problems`,
 * at the child `name` of `path`, or at `path` itself when `name` is NULL. */
#ifndef DV_RESOURCE_CHECKS_H
#define DV_RESOURCE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "resource/validate/problem.h" /* IWYU pragma: export */

struct dv_api_condition;
struct dv_api_device_selector;
struct dv_api_device_taint;
struct dv_api_label_selector;
struct dv_api_match_condition;
struct dv_api_match_resources;
struct dv_api_node_selector;
struct dv_api_node_selector_term;
struct dv_api_object_meta;
struct dv_api_resource_requirements;
struct dv_api_rule_with_operations;
struct dv_api_toleration;
struct dv_arena;
struct dv_cel_policy;
struct dv_int_or_str;
struct dv_map;
struct dv_quantity;
struct dv_quantity_entry;

/* -- Formats (name_checks.c) ----------------------------------------------------------------------
 */

typedef void dv_check_text(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, dv_str value);

dv_check_text dv_check_dns_label;
dv_check_text dv_check_dns_1035_label; /* begins with a letter */
dv_check_text dv_check_dns_subdomain;
dv_check_text dv_check_dns_subdomain_bytes; /* its message counts bytes */
dv_check_text dv_check_label_name;
dv_check_text dv_check_annotation_name; /* a label name in upper or lower case */
dv_check_text dv_check_label_value;
dv_check_text dv_check_config_key;
dv_check_text dv_check_path_segment; /* fits into a path: all else is allowed, colons too */
dv_check_text dv_check_driver_name;
dv_check_text dv_check_pool_name;
dv_check_text dv_check_qualified_name; /* of attributes and capacities: [domain/]identifier */
dv_check_text dv_check_full_name;      /* a qualified name that has its domain */
dv_check_text dv_check_uuid;
dv_check_text dv_check_condition_reason;
dv_check_text dv_check_interface_address; /* "192.0.2.5/24" */

/* Checks the value by `check`; an empty one is a `Required value`. */
void dv_check_required(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str value, dv_check_text *check);
void dv_check_one_of(struct dv_problems *problems, const struct dv_field_path *path,
                     const char *name, dv_str value, const dv_str *supported, size_t n_supported);

/* Whether a text is an address (validate_service.c). */
bool dv_is_ip(dv_str text, bool *is_v6);

/* -- Metadata (validate_meta.c) ------------------------------------------------------------- */

struct dv_meta_rules {
    dv_check_text *check_name;
    bool is_namespaced;
};

void dv_check_meta(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                   const struct dv_meta_rules *rules);
void dv_check_meta_update(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                          const struct dv_api_object_meta *old);
/* Like dv_check_meta_update, and finalizers without a domain: what a kind's own rules check, beside
 * what is checked before of all kinds. */
void dv_check_kind_meta_update(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                               const struct dv_api_object_meta *old);
/* Checks the labels and annotations of a template for pods. As in the reference their path is that
 * of the template, without its metadata. */
void dv_check_labels(struct dv_problems *problems, const struct dv_field_path *path,
                     const struct dv_api_object_meta *meta);
/* Checks the metadata of a template: it has labels and annotations, nothing else. */
void dv_check_template_meta(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_object_meta *meta);

/* -- Parts of several kinds (validate_parts.c) ---------------------------------------------- */

/* Checks that JSON is an object. `is_stored` waives the limit on its length. */
void dv_check_raw_object(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str raw, size_t bytes_max, bool is_stored);
void dv_check_conditions(struct dv_problems *problems, const struct dv_field_path *path,
                         const struct dv_api_condition *conditions, size_t n);
/* Checks a selector of labels: field by field, and then as a whole once more, as the reference
 * does where `is_told_twice`. */
void dv_check_label_selector(struct dv_problems *problems, const struct dv_field_path *path,
                             const struct dv_api_label_selector *selector, bool is_told_twice);
/* A number that is not negative, or a share such as "25%". */
void dv_check_int_or_percent(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, const struct dv_int_or_str *value);
void dv_check_not_over_all(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, const struct dv_int_or_str *value);
/* Adds `must be greater than or equal to 0`. */
void dv_check_not_negative(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, int64_t value);
void dv_check_node_selector(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_api_node_selector *selector);
void dv_check_node_selector_term(struct dv_problems *problems, const struct dv_field_path *path,
                                 const struct dv_api_node_selector_term *term);
/* Checks both lists of conditions that a device or a result has, at `path`. */
void dv_check_binding(struct dv_problems *problems, const struct dv_field_path *path,
                      const dv_str *binding, size_t n_binding, const dv_str *failure,
                      size_t n_failure);
/* `old` may be NULL: with it, an effect that has not changed is not looked at. */
void dv_check_device_taint(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_device_taint *taint,
                           const struct dv_api_device_taint *old);
void dv_check_taint_effect(struct dv_problems *problems, const struct dv_field_path *path,
                           dv_str effect);
/* Checks selectors of a class or request; `is_stored`: they have not changed. */
void dv_check_selectors(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_device_selector *selectors, size_t n, bool is_stored);

/* Checks tolerations of taints of nodes. */
void dv_check_tolerations(struct dv_problems *problems, const struct dv_field_path *path,
                          const struct dv_api_toleration *tolerations, size_t n);

/* -- Selectors (validate_cel.c) ------------------------------------------------------------- */

void dv_check_cel(struct dv_problems *problems, const struct dv_field_path *path, dv_str expression,
                  bool is_stored);

/* -- Admission policies and webhooks (validate_vap.c, validate_vap_match.c) ----------------- */

/* Checks which requests are matched, with the defaults filled in. */
void dv_check_match_resources(struct dv_problems *problems, const struct dv_field_path *path,
                              const struct dv_api_match_resources *match);
/* Checks the field matchPolicy and the field failurePolicy at `path`. */
void dv_check_match_policy(struct dv_problems *problems, const struct dv_field_path *path,
                           dv_str policy);
void dv_check_failure_policy(struct dv_problems *problems, const struct dv_field_path *path,
                             dv_str policy);
void dv_check_rule_with_operations(struct dv_problems *problems, const struct dv_field_path *path,
                                   const struct dv_api_rule_with_operations *with);
/* Checks the conditions of the list at `path`; what they are compiled to is lost with `arena`. */
void dv_check_match_conditions(struct dv_problems *problems, const struct dv_field_path *path,
                               const struct dv_cel_policy *policy,
                               const struct dv_api_match_condition *conditions, size_t n,
                               struct dv_arena *arena);

/* -- Resources of containers and nodes (validate_resources.c) ------------------------------- */

/* Checks that the amount is not negative, and whole when the resource is counted in whole
 * numbers. */
void dv_check_resource_value(struct dv_problems *problems, const struct dv_field_path *path,
                             dv_str resource, const struct dv_quantity *value);
/* Checks amounts of a quota, by the names that quotas may have. */
void dv_check_quota_amounts(struct dv_problems *problems, const struct dv_field_path *path,
                            const struct dv_quantity_entry *entries, size_t n);
/* Whether it is one of the names without a domain that quotas may have. */
bool dv_is_quota_resource(dv_str name);
/* `claims` are those of the pod that they may name, by name. */
void dv_check_resources(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_resource_requirements *resources,
                        const struct dv_map *claims);

#endif
