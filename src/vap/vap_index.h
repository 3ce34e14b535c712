/* vap_index.h - policies and bindings as the index keeps them. */
#ifndef DV_VAP_INDEX_H
#define DV_VAP_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "vap/vap_match.h"

struct dv_arena;
struct dv_vap_conditions;

/* An expression that was compiled, or that fails with `problem` whenever it is evaluated. */
struct dv_vap_rule {
    dv_str text;
    const struct dv_cel_rule *rule;
    dv_str problem;
};

struct dv_vap_validation {
    struct dv_vap_rule rule;
    struct dv_vap_rule message; /* its text is empty: there is none */
    const struct dv_api_validation *value;
};

/* A policy or a binding, compiled. It lives as long as the index or a judgement refers to it. */
struct dv_vap_policy {
    uint32_t n_refs;
    struct dv_arena *arena;   /* with this struct */
    struct dv_object *object; /* a reference */
    const struct dv_api_validating_admission_policy *value;
    struct dv_vap_match match;
    struct dv_cel_policy *cel;
    struct dv_vap_conditions *conditions;
    struct dv_vap_validation *validations;
    const struct dv_kind *param_kind; /* NULL: it has none, or one that is not known */
    const struct dv_api_version *param_version;
    bool is_fail;                             /* failurePolicy */
    DV_VEC(struct dv_vap_binding *) bindings; /* by name; the index's */
};

struct dv_vap_binding {
    uint32_t n_refs;
    struct dv_arena *arena;
    struct dv_object *object; /* a reference */
    const struct dv_api_validating_admission_policy_binding *value;
    struct dv_vap_match match;
};

struct dv_vap {
    struct dv_map policies; /* struct dv_vap_policy, by name */
    struct dv_map bindings; /* struct dv_vap_binding, by name */
    /* Those that have a binding, in the order in which they are asked. */
    DV_VEC(struct dv_vap_policy *) active;
    bool is_about[DV_KIND_CUSTOM + 1];
};

/* Compiles an expression into `arena`. */
struct dv_vap_rule dv_vap_rule_of(const struct dv_cel_policy *cel, dv_str text,
                                  struct dv_cel_rule_options how, struct dv_arena *arena);
struct dv_vap_policy *dv_vap_policy_new(struct dv_object *object);
void dv_vap_policy_unref(struct dv_vap_policy *policy);
struct dv_vap_binding *dv_vap_binding_new(struct dv_object *object);
void dv_vap_binding_unref(struct dv_vap_binding *binding);

#endif
