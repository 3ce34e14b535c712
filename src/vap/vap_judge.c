/* vap_judge.c - what policies say of a write: which are asked, with which parameters, and the
 * decisions that make the answer, as the reference's dispatcher and validator do it. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "vap/vap_document.h"
#include "vap/vap_evaluate.h"
#include "vap/vap_index.h"
#include "vap/vap_match.h"

/* What the validations of a policy may cost for one binding and parameter. */
#define VALIDATIONS_COST_MAX 10000000u
/* A message that is computed and longer is not shown. */
#define MESSAGE_BYTES_MAX (5u * 1024u)

/* A policy that is asked, by one of its bindings, with one parameter. */
struct trial {
    struct dv_vap_policy *policy;   /* a reference */
    struct dv_vap_binding *binding; /* a reference; NULL: the policy itself is wrong */
    const struct dv_api_version *version;
    const struct dv_cel_val *params; /* NULL: null */
    dv_str problem;                  /* not empty: it cannot be asked, because of this */
};

struct dv_vap_judgement {
    struct dv_vap_evaluation evaluation;
    struct dv_arena *arena; /* of what is found out before anything is evaluated */
    DV_VEC(struct trial) trials;
    const struct dv_cel_val *namespace_object;
    struct dv_vap_verdict verdict;
    DV_VEC(dv_str) warnings;
};

/* ---- what is asked ---- */

static void add_trial(struct dv_vap_judgement *j, const struct trial *trial)
{
    trial->policy->n_refs++;
    if (trial->binding)
        trial->binding->n_refs++;
    *dv_vec_add_in(&j->trials, j->arena) = *trial;
}

static void add_problem(struct dv_vap_judgement *j, const struct trial *trial, const char *problem)
{
    struct trial failed = *trial;

    failed.problem = dv_str_copy(dv_str_from_c(problem), j->arena);
    add_trial(j, &failed);
}

struct gathering {
    struct dv_vap_judgement *judgement;
    const struct trial *trial;
    size_t n;
};

static void add_param(void *ctx, const struct dv_object *object)
{
    struct gathering *gathering = ctx;
    struct dv_vap_judgement *j = gathering->judgement;
    struct trial trial = *gathering->trial;

    trial.params =
        dv_vap_from_object(trial.policy->param_version->message, object->value,
                           trial.policy->param_version, trial.policy->param_kind->name, j->arena);
    gathering->n++;
    add_trial(j, &trial);
}

static void gather_params(struct dv_vap_judgement *j, const struct trial *trial)
{
    const struct dv_api_param_ref *ref = trial->binding->value->spec.param_ref;
    const struct dv_kind *kind = trial->policy->param_kind;
    struct gathering gathering = {j, trial, 0};
    const struct dv_object *found;
    dv_str ns = DV_STR_NONE;

    if (kind->is_namespaced) {
        ns = ref->namespace;
        if (ns.n == 0 && j->evaluation.write->kind->is_namespaced)
            ns = j->evaluation.write->namespace;
        if (ns.n == 0) {
            add_problem(j, trial,
                        "cannot use namespaced paramRef in policy binding that matches "
                        "cluster-scoped resources");
            return;
        }
    } else if (ref->namespace.n > 0) {
        add_problem(j, trial,
                    "paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
        return;
    }
    if (ref->name.n > 0) {
        found = j->evaluation.world.get(j->evaluation.world.ctx, kind, ns, ref->name);
        if (found)
            add_param(&gathering, found);
    } else if (ref->selector) {
        j->evaluation.world.list(j->evaluation.world.ctx, kind, ns, ref->selector, add_param,
                                 &gathering);
    }
    if (gathering.n == 0 && dv_str_eq(ref->parameter_not_found_action, DV_STR("Deny")))
        add_problem(j, trial,
                    "no params found for policy binding with `Deny` parameterNotFoundAction");
}

static void ask_binding(struct dv_vap_judgement *j, const struct trial *trial)
{
    if (trial->policy->value->spec.param_kind && trial->binding->value->spec.param_ref)
        gather_params(j, trial);
    else
        add_trial(j, trial);
}

static void ask_policy(struct dv_vap_judgement *j, struct dv_vap_policy *policy,
                       const struct dv_vap_labels *labels)
{
    const struct dv_api_param_kind *kind = policy->value->spec.param_kind;
    struct trial trial = {.policy = policy};
    const struct dv_api_version *ignored;

    if (!dv_vap_matches(&policy->match, j->evaluation.write, labels, &trial.version))
        return;
    if (kind && !policy->param_kind) {
        dv_str group, version;

        dv_api_version_split(kind->api_version, &group, &version);
        add_problem(j, &trial,
                    dv_str_printf(j->arena,
                                  "failed to find resource referenced by paramKind: "
                                  "'%.*s/%.*s, Kind=%.*s'",
                                  DV_FMT(group), DV_FMT(version), DV_FMT(kind->kind))
                        .p);
        return;
    }
    for (size_t i = 0; i < policy->bindings.n; i++) {
        trial.binding = policy->bindings.v[i];
        if (dv_vap_matches(&trial.binding->match, j->evaluation.write, labels, &ignored))
            ask_binding(j, &trial);
    }
}

/* What policies may see of a namespace. */
static const struct dv_cel_val *show_namespace(const struct dv_object *object,
                                               struct dv_arena *arena)
{
    const struct dv_kind *kind = object->kind;
    struct dv_api_namespace shown = *(const struct dv_api_namespace *)object->value;

    shown.metadata.managed_fields = NULL;
    shown.metadata.n_managed_fields = 0;
    return dv_vap_from_object(kind->versions->message, &shown, kind->versions, kind->name, arena);
}

struct dv_vap_judgement *dv_vap_judge(struct dv_vap *vap, const struct dv_vap_write *write,
                                      const struct dv_vap_world *world)
{
    struct dv_vap_labels labels = {.old = write->old};
    struct dv_vap_judgement *j;
    const struct dv_object *ns = NULL;

    if (!dv_vap_is_about(vap, write->kind))
        return NULL;
    j = DV_ALLOC(struct dv_vap_judgement);
    j->arena = dv_arena_new();
    dv_vap_evaluation_init(&j->evaluation, write, world, j->arena);
    labels.object = write->object;
    if (write->kind->is_namespaced && write->namespace.n > 0)
        ns = world->get(world->ctx, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE, write->namespace);
    labels.namespace = ns ? ns->meta : NULL;
    for (size_t i = 0; i < vap->active.n; i++)
        ask_policy(j, vap->active.v[i], &labels);
    if (j->trials.n == 0) {
        dv_vap_judgement_free(j);
        return NULL;
    }
    if (ns)
        j->namespace_object = show_namespace(ns, j->arena);
    return j;
}

void dv_vap_judgement_free(struct dv_vap_judgement *judgement)
{
    if (!judgement)
        return;
    for (size_t i = 0; i < judgement->trials.n; i++) {
        dv_vap_policy_unref(judgement->trials.v[i].policy);
        dv_vap_binding_unref(judgement->trials.v[i].binding);
    }
    dv_vap_evaluation_fini(&judgement->evaluation);
    dv_arena_free(judgement->arena);
    free(judgement);
}

/* ---- decisions ---- */

static int code_of(dv_str reason)
{
    if (dv_str_eq(reason, DV_STR("Forbidden")))
        return 403;
    if (dv_str_eq(reason, DV_STR("Unauthorized")))
        return 401;
    return dv_str_eq(reason, DV_STR("RequestEntityTooLarge")) ? 413 : 422;
}

static void refuse(struct dv_vap_judgement *j, const struct trial *trial, dv_str reason,
                   dv_str message)
{
    struct dv_vap_verdict *verdict = &j->verdict;
    dv_str policy = trial->policy->object->meta->name;

    if (verdict->is_refused) /* the first one is told */
        return;
    verdict->is_refused = true;
    verdict->reason = reason;
    verdict->code = code_of(reason);
    verdict->message =
        trial->binding
            ? dv_str_printf(j->evaluation.scratch,
                            "ValidatingAdmissionPolicy '%.*s' with binding '%.*s' denied request: "
                            "%.*s",
                            DV_FMT(policy), DV_FMT(trial->binding->object->meta->name),
                            DV_FMT(message))
            : dv_str_printf(j->evaluation.scratch,
                            "ValidatingAdmissionPolicy '%.*s' denied request: %.*s", DV_FMT(policy),
                            DV_FMT(message));
}

static void warn(struct dv_vap_judgement *j, const struct trial *trial, dv_str message)
{
    *dv_vec_add_in(&j->warnings, j->evaluation.scratch) =
        dv_str_printf(j->evaluation.scratch,
                      "Validation failed for ValidatingAdmissionPolicy '%.*s' with binding '%.*s': "
                      "%.*s",
                      DV_FMT(trial->policy->object->meta->name),
                      DV_FMT(trial->binding->object->meta->name), DV_FMT(message));
}

/* Does what the binding says is to be done about a failure. Audit leaves a mark in a log that the
 * embedded API does not have. */
static void act(struct dv_vap_judgement *j, const struct trial *trial, dv_str reason,
                dv_str message)
{
    const struct dv_api_validating_admission_policy_binding_spec *spec =
        &trial->binding->value->spec;

    for (size_t i = 0; i < spec->n_validation_actions; i++) {
        if (dv_str_eq(spec->validation_actions[i], DV_STR("Deny")))
            refuse(j, trial, reason, message);
        else if (dv_str_eq(spec->validation_actions[i], DV_STR("Warn")))
            warn(j, trial, message);
    }
}

static void act_on_error(struct dv_vap_judgement *j, const struct trial *trial, dv_str message)
{
    if (trial->policy->is_fail)
        act(j, trial, DV_STR("Invalid"), message);
}

/* ---- validations ---- */

/* Finds the message of a validation that is false: computed, written, or made of the expression.
 * False: the run was stopped. */
static bool find_message(struct dv_vap_evaluation *e, const struct dv_vap_validation *validation,
                         dv_str *message)
{
    struct dv_cel_gave gave;

    *message = DV_STR_NONE;
    if (validation->message.text.n > 0) {
        enum dv_cel_outcome outcome = dv_vap_evaluate(e, &validation->message, &gave);

        if (outcome == DV_CEL_STOPPED)
            return false;
        if (outcome == DV_CEL_GAVE_STRING && !e->is_out_of_budget)
            *message = dv_str_trim(gave.s);
        if (message->n > MESSAGE_BYTES_MAX || dv_str_find_char(*message, '\n') < message->n)
            *message = DV_STR_NONE;
    }
    if (message->n == 0)
        *message = dv_str_trim(validation->value->message);
    if (message->n == 0)
        *message = dv_str_printf(e->scratch, "failed expression: %.*s",
                                 DV_FMT(dv_str_trim(validation->value->expression)));
    return true;
}

struct decision {
    bool is_error;
    bool is_false;
    dv_str message;
};

/* All validations are evaluated before anything is done about them: what runs out of its budget has
 * one failure, whatever was found before. False: the run was stopped. */
static bool check_validations(struct dv_vap_judgement *j, const struct trial *trial)
{
    struct dv_vap_evaluation *e = &j->evaluation;
    const struct dv_vap_policy *policy = trial->policy;
    size_t n = policy->value->spec.n_validations;
    struct decision *decisions = DV_NEW_ARRAY(e->scratch, struct decision, n + 1);

    for (size_t i = 0; i < n; i++) {
        struct dv_cel_gave gave;
        enum dv_cel_outcome outcome = dv_vap_evaluate(e, &policy->validations[i].rule, &gave);

        if (outcome == DV_CEL_STOPPED)
            return false;
        if (e->is_out_of_budget) {
            act_on_error(j, trial, DV_STR(DV_VAP_OUT_OF_BUDGET));
            return true;
        }
        decisions[i].is_error = outcome == DV_CEL_GAVE_ERROR;
        decisions[i].is_false = outcome != DV_CEL_GAVE_BOOL || !gave.b;
        decisions[i].message = gave.s;
    }
    for (size_t i = 0; i < n; i++) {
        const struct dv_vap_validation *validation = &policy->validations[i];
        dv_str reason = validation->value->reason;

        if (decisions[i].is_error) {
            act_on_error(j, trial, decisions[i].message);
        } else if (decisions[i].is_false) {
            if (!find_message(e, validation, &decisions[i].message))
                return false;
            act(j, trial, reason.n > 0 ? reason : DV_STR("Invalid"), decisions[i].message);
        }
    }
    return true;
}

/* ---- runs ---- */

/* False: the run was stopped. */
static bool run_trial(struct dv_vap_judgement *j, const struct trial *trial)
{
    struct dv_vap_evaluation *e = &j->evaluation;
    dv_str problem;

    if (trial->problem.n > 0) {
        if (trial->policy->is_fail)
            refuse(j, trial, DV_STR("Invalid"),
                   dv_str_printf(e->scratch, "failed to configure %s: %.*s",
                                 trial->binding ? "binding" : "policy", DV_FMT(trial->problem)));
        return true;
    }
    dv_vap_evaluation_show(e, trial->version);
    e->inputs.params = trial->params;
    switch (dv_vap_conditions_check(e, trial->policy->conditions, &problem)) {
    case DV_VAP_CONDITIONS_STOPPED:
        return false;
    case DV_VAP_CONDITIONS_FALSE:
        return true;
    case DV_VAP_CONDITIONS_FAILED:
        act_on_error(j, trial, problem);
        return true;
    case DV_VAP_CONDITIONS_TRUE:
        break;
    }
    dv_vap_evaluation_open(e, trial->policy->cel, j->namespace_object, VALIDATIONS_COST_MAX);
    return check_validations(j, trial);
}

enum dv_vap_step dv_vap_run(struct dv_vap_judgement *judgement, enum dv_vap_place place)
{
    dv_vap_evaluation_begin(&judgement->evaluation, place);
    judgement->verdict = (struct dv_vap_verdict){0};
    judgement->warnings.v = NULL;
    judgement->warnings.n = judgement->warnings.size = 0;
    for (size_t i = 0; i < judgement->trials.n; i++)
        if (!run_trial(judgement, &judgement->trials.v[i]))
            return dv_vap_evaluation_needs(&judgement->evaluation);
    judgement->verdict.warnings = judgement->warnings.v;
    judgement->verdict.n_warnings = judgement->warnings.n;
    return DV_VAP_DONE;
}

void dv_vap_decide(struct dv_vap_judgement *judgement)
{
    dv_vap_evaluation_decide(&judgement->evaluation);
}

const struct dv_vap_verdict *dv_vap_verdict(const struct dv_vap_judgement *judgement)
{
    return &judgement->verdict;
}
