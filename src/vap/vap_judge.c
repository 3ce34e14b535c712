/* vap_judge.c - what policies say of a write: which are asked, with which parameters, and the
 * decisions that make the answer, as the reference's dispatcher and validator do it. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "resource/cel_document.h"
#include "resource/resource.h"
#include "vap/vap.h"
#include "vap/vap_document.h"
#include "vap/vap_index.h"
#include "vap/vap_match.h"

/* What the validations of a policy may cost for one binding and parameter, and its conditions. */
#define VALIDATIONS_COST_MAX 10000000u
#define CONDITIONS_COST_MAX 2500000u
#define OUT_OF_BUDGET                                                                              \
    "validation failed due to running out of cost budget, no further validation rules will be run"
/* A message that is computed and longer is not shown. */
#define MESSAGE_BYTES_MAX (5u * 1024u)
#define TEXT_BYTES_MAX (64u * 1024u)
/* How many hundreds of rounds of comprehensions the loop has time for. */
#define LOOP_PATIENCE 10u

/* A policy that is asked, by one of its bindings, with one parameter. */
struct trial {
    struct dv_vap_policy *policy;   /* a reference */
    struct dv_vap_binding *binding; /* a reference; NULL: the policy itself is wrong */
    const struct dv_api_version *version;
    const struct dv_cel_val *params; /* NULL: null */
    dv_str problem;                  /* not empty: it cannot be asked, because of this */
};

struct answer {
    struct dv_cel_check check;
    struct dv_cel_decision decision;
};

struct dv_vap_judgement {
    const struct dv_vap_write *write;
    struct dv_vap_world world;
    struct dv_arena *arena;   /* of what is found out before anything is evaluated */
    struct dv_arena *scratch; /* of one run */
    DV_VEC(struct trial) trials;
    const struct dv_cel_val *namespace_object;
    DV_VEC(struct answer) answers; /* of the authorizer */
    struct dv_cel_check wanted;    /* the question that a worker has ended with */
    bool is_wanting;
    bool is_on_loop;
    unsigned n_rounds;
    /* Objects in the version of the trial before, which mostly is that of the next, too. */
    const struct dv_api_version *shown;
    struct dv_cel_inputs inputs;
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
    dv_str namespace = DV_STR_NONE;

    if (kind->is_namespaced) {
        namespace = ref->namespace;
        if (namespace.n == 0 && j->write->kind->is_namespaced)
        namespace = j->write->namespace;
        if (namespace.n == 0) {
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
        found = j->world.get(j->world.ctx, kind, namespace, ref->name);
        if (found)
            add_param(&gathering, found);
    } else if (ref->selector) {
        j->world.list(j->world.ctx, kind, namespace, ref->selector, add_param, &gathering);
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

    if (!dv_vap_matches(&policy->match, j->write, labels, &trial.version))
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
        if (dv_vap_matches(&trial.binding->match, j->write, labels, &ignored))
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
    const struct dv_object *namespace = NULL;

    if (!dv_vap_is_about(vap, write->kind))
        return NULL;
    j = DV_ALLOC(struct dv_vap_judgement);
    j->write = write;
    j->world = *world;
    j->arena = dv_arena_new();
    labels.object = write->object;
    if (write->kind->is_namespaced && write->namespace.n > 0)
    namespace = world->get(world->ctx, dv_kind(DV_KIND_NAMESPACE), DV_STR_NONE, write->namespace);
    labels.namespace = namespace ? namespace->meta : NULL;
    for (size_t i = 0; i < vap->active.n; i++)
        ask_policy(j, vap->active.v[i], &labels);
    if (j->trials.n == 0) {
        dv_vap_judgement_free(j);
        return NULL;
    }
    if (namespace)
        j->namespace_object = show_namespace(namespace, j->arena);
    j->scratch = dv_arena_new();
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
    dv_arena_free(judgement->scratch);
    dv_arena_free(judgement->arena);
    free(judgement);
}

/* ---- the authorizer ---- */

static bool is_same_check(const struct dv_cel_check *a, const struct dv_cel_check *b)
{
    return dv_str_eq(a->verb, b->verb) && dv_str_eq(a->group, b->group) &&
           dv_str_eq(a->resource, b->resource) && dv_str_eq(a->subresource, b->subresource) &&
           dv_str_eq(a->namespace, b->namespace) && dv_str_eq(a->name, b->name) &&
           dv_str_eq(a->path, b->path) && dv_str_eq(a->field_selector, b->field_selector) &&
           dv_str_eq(a->label_selector, b->label_selector) &&
           dv_str_eq(a->account_namespace, b->account_namespace) &&
           dv_str_eq(a->account_name, b->account_name);
}

static struct dv_cel_check copy_check(const struct dv_cel_check *check, struct dv_arena *arena)
{
    return (struct dv_cel_check){
        .verb = dv_str_copy(check->verb, arena),
        .group = dv_str_copy(check->group, arena),
        .resource = dv_str_copy(check->resource, arena),
        .subresource = dv_str_copy(check->subresource, arena),
        .namespace = dv_str_copy(check->namespace, arena),
        .name = dv_str_copy(check->name, arena),
        .path = dv_str_copy(check->path, arena),
        .field_selector = dv_str_copy(check->field_selector, arena),
        .label_selector = dv_str_copy(check->label_selector, arena),
        .account_namespace = dv_str_copy(check->account_namespace, arena),
        .account_name = dv_str_copy(check->account_name, arena),
    };
}

static const struct answer *answer(struct dv_vap_judgement *j, const struct dv_cel_check *check)
{
    struct answer *answer = dv_vec_add_in(&j->answers, j->arena);

    answer->check = copy_check(check, j->arena);
    j->world.decide(j->world.ctx, &answer->check, j->arena, &answer->decision);
    return answer;
}

static bool decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    struct dv_vap_judgement *j = ctx;

    (void)arena;
    for (size_t i = 0; i < j->answers.n; i++)
        if (is_same_check(&j->answers.v[i].check, check)) {
            *decision = j->answers.v[i].decision;
            return true;
        }
    if (!j->is_on_loop) {
        j->wanted = copy_check(check, j->arena);
        j->is_wanting = true;
        return false;
    }
    *decision = answer(j, check)->decision;
    return true;
}

void dv_vap_decide(struct dv_vap_judgement *judgement)
{
    (void)answer(judgement, &judgement->wanted);
    judgement->is_wanting = false;
}

/* ---- decisions ---- */

static bool is_stopped(void *ctx)
{
    struct dv_vap_judgement *j = ctx;

    return j->is_on_loop && ++j->n_rounds > LOOP_PATIENCE;
}

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
            ? dv_str_printf(j->scratch,
                            "ValidatingAdmissionPolicy '%.*s' with binding '%.*s' denied request: "
                            "%.*s",
                            DV_FMT(policy), DV_FMT(trial->binding->object->meta->name),
                            DV_FMT(message))
            : dv_str_printf(j->scratch, "ValidatingAdmissionPolicy '%.*s' denied request: %.*s",
                            DV_FMT(policy), DV_FMT(message));
}

static void warn(struct dv_vap_judgement *j, const struct trial *trial, dv_str message)
{
    *dv_vec_add_in(&j->warnings, j->scratch) =
        dv_str_printf(j->scratch,
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

/* ---- expressions ---- */

struct evaluation {
    struct dv_vap_judgement *judgement;
    struct dv_cel_session *session;
    uint64_t cost_left;
    bool is_out_of_budget;
};

/* Evaluates a rule and takes its cost off. An error is in gave->s, as it is told. */
static enum dv_cel_outcome evaluate(struct evaluation *e, const struct dv_vap_rule *rule,
                                    struct dv_cel_gave *gave)
{
    struct dv_arena *arena = e->judgement->scratch;
    enum dv_cel_outcome outcome;

    if (!rule->rule) {
        *gave = (struct dv_cel_gave){
            .s = dv_str_printf(arena, "compilation error: %.*s", DV_FMT(rule->problem))};
        return DV_CEL_GAVE_ERROR;
    }
    outcome = dv_cel_session_eval(e->session, rule->rule, gave);
    if (outcome == DV_CEL_STOPPED)
        return outcome;
    e->is_out_of_budget = gave->cost > e->cost_left;
    e->cost_left -= e->is_out_of_budget ? e->cost_left : gave->cost;
    if (outcome == DV_CEL_GAVE_ERROR)
        gave->s = dv_str_printf(arena, "expression '%.*s' resulted in error: %.*s",
                                DV_FMT(rule->text), DV_FMT(gave->s));
    return outcome;
}

/* How far a trial has come. */
enum progress {
    GOES_ON,
    ENDS,
    STOPS, /* the run was stopped */
};

/* A condition that is false counts before one that fails. */
static enum progress check_conditions(struct evaluation *e, const struct trial *trial)
{
    const struct dv_vap_policy *policy = trial->policy;
    struct dv_vap_judgement *j = e->judgement;
    size_t n_errors = 0;
    DV_CLEANUP(dv_buf_fini) struct dv_buf errors;

    dv_buf_init(&errors, TEXT_BYTES_MAX);
    for (size_t i = 0; i < policy->value->spec.n_match_conditions; i++) {
        struct dv_cel_gave gave;
        enum dv_cel_outcome outcome = evaluate(e, &policy->conditions[i], &gave);

        if (outcome == DV_CEL_STOPPED)
            return STOPS;
        if (e->is_out_of_budget) {
            act_on_error(j, trial, DV_STR(OUT_OF_BUDGET));
            return ENDS;
        }
        if (outcome == DV_CEL_GAVE_BOOL && !gave.b)
            return ENDS;
        if (outcome == DV_CEL_GAVE_ERROR)
            dv_buf_printf(&errors, "%s%.*s", n_errors++ > 0 ? ", " : "", DV_FMT(gave.s));
    }
    if (n_errors == 0)
        return GOES_ON;
    act_on_error(j, trial,
                 dv_str_printf(j->scratch, n_errors > 1 ? "[%s]" : "%s", dv_buf_c(&errors)));
    return ENDS;
}

/* The message of a validation that is false: computed, written, or made of the expression. */
static enum progress find_message(struct evaluation *e, const struct dv_vap_validation *validation,
                                  dv_str *message)
{
    struct dv_cel_gave gave;

    *message = DV_STR_NONE;
    if (validation->message.text.n > 0) {
        enum dv_cel_outcome outcome = evaluate(e, &validation->message, &gave);

        if (outcome == DV_CEL_STOPPED)
            return STOPS;
        if (outcome == DV_CEL_GAVE_STRING && !e->is_out_of_budget)
            *message = dv_str_trim(gave.s);
        if (message->n > MESSAGE_BYTES_MAX || dv_str_find_char(*message, '\n') < message->n)
            *message = DV_STR_NONE;
    }
    if (message->n == 0)
        *message = dv_str_trim(validation->value->message);
    if (message->n == 0)
        *message = dv_str_printf(e->judgement->scratch, "failed expression: %.*s",
                                 DV_FMT(dv_str_trim(validation->value->expression)));
    return GOES_ON;
}

struct decision {
    bool is_error;
    bool is_false;
    dv_str message;
};

/* All validations are evaluated before anything is done about them: what runs out of its budget has
 * one failure, whatever was found before. */
static enum progress check_validations(struct evaluation *e, const struct trial *trial)
{
    const struct dv_vap_policy *policy = trial->policy;
    struct dv_vap_judgement *j = e->judgement;
    size_t n = policy->value->spec.n_validations;
    struct decision *decisions = DV_NEW_ARRAY(j->scratch, struct decision, n + 1);

    for (size_t i = 0; i < n; i++) {
        struct dv_cel_gave gave;
        enum dv_cel_outcome outcome = evaluate(e, &policy->validations[i].rule, &gave);

        if (outcome == DV_CEL_STOPPED)
            return STOPS;
        if (e->is_out_of_budget) {
            act_on_error(j, trial, DV_STR(OUT_OF_BUDGET));
            return ENDS;
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
            if (find_message(e, validation, &decisions[i].message) == STOPS)
                return STOPS;
            act(j, trial, reason.n > 0 ? reason : DV_STR("Invalid"), decisions[i].message);
        }
    }
    return ENDS;
}

/* ---- runs ---- */

/* Shows the objects in the version that the policy asks for. */
static void show_objects(struct dv_vap_judgement *j, const struct dv_api_version *version)
{
    const struct dv_vap_write *write = j->write;

    if (j->shown == version)
        return;
    j->shown = version;
    j->inputs.object = j->inputs.old_object = NULL;
    if (write->other)
        j->inputs.object = dv_cel_from_json(write->other, j->scratch);
    else if (write->object)
        j->inputs.object = dv_vap_from_object(version->message, write->object, version,
                                              write->kind->name, j->scratch);
    if (write->old)
        j->inputs.old_object = dv_vap_from_object(version->message, write->old, version,
                                                  write->kind->name, j->scratch);
    j->inputs.request = dv_vap_request(write, version, j->scratch);
}

static enum progress run_trial(struct dv_vap_judgement *j, const struct trial *trial)
{
    const struct dv_vap_write *write = j->write;
    const struct dv_cel_authorizer authorizer = {
        .decide = decide,
        .ctx = j,
        .request = {.group = write->version->group,
                    .resource = write->kind->plural,
                    .subresource = write->subresource,
                    .namespace = write->namespace,
                    .name = write->name},
    };
    struct evaluation e = {.judgement = j, .cost_left = CONDITIONS_COST_MAX};
    enum progress progress = GOES_ON;

    if (trial->problem.n > 0) {
        if (trial->policy->is_fail)
            refuse(j, trial, DV_STR("Invalid"),
                   dv_str_printf(j->scratch, "failed to configure %s: %.*s",
                                 trial->binding ? "binding" : "policy", DV_FMT(trial->problem)));
        return ENDS;
    }
    show_objects(j, trial->version);
    j->inputs.params = trial->params;
    j->inputs.authorizer = &authorizer;
    j->inputs.is_stopped = is_stopped;
    j->inputs.ctx = j;
    if (trial->policy->value->spec.n_match_conditions > 0) {
        j->inputs.namespace_object = NULL; /* conditions do not see it */
        e.session = dv_cel_session_new(trial->policy->conditions_cel, &j->inputs, j->scratch);
        progress = check_conditions(&e, trial);
    }
    if (progress != GOES_ON)
        return progress;
    j->inputs.namespace_object = j->namespace_object;
    e.session = dv_cel_session_new(trial->policy->cel, &j->inputs, j->scratch);
    e.cost_left = VALIDATIONS_COST_MAX;
    return check_validations(&e, trial);
}

enum dv_vap_step dv_vap_run(struct dv_vap_judgement *judgement, enum dv_vap_place place)
{
    dv_arena_reset(judgement->scratch);
    judgement->shown = NULL;
    judgement->inputs = (struct dv_cel_inputs){0};
    judgement->verdict = (struct dv_vap_verdict){0};
    judgement->warnings.v = NULL;
    judgement->warnings.n = judgement->warnings.size = 0;
    judgement->n_rounds = 0;
    judgement->is_on_loop = place == DV_VAP_ON_LOOP;
    for (size_t i = 0; i < judgement->trials.n; i++)
        if (run_trial(judgement, &judgement->trials.v[i]) == STOPS)
            return judgement->is_wanting ? DV_VAP_NEEDS_DECISION : DV_VAP_NEEDS_WORKER;
    judgement->verdict.warnings = judgement->warnings.v;
    judgement->verdict.n_warnings = judgement->warnings.n;
    return DV_VAP_DONE;
}

const struct dv_vap_verdict *dv_vap_verdict(const struct dv_vap_judgement *judgement)
{
    return &judgement->verdict;
}
