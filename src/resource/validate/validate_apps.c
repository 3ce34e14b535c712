/* validate_apps.c - what makes pods: a selector, a template that it selects, and how one template
 * gives way to the next. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"
#include "resource/validate/validate_kinds.h"

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};
static const struct dv_meta_rules subdomain_rules = {dv_check_dns_subdomain, true};

/* -- Numbers and percentages ---------------------------------------------------------------- */

static struct dv_bad_value bad_int_or_str(const struct dv_int_or_str *value)
{
    return value->is_text ? dv_bad_str(value->text) : dv_bad_i64(value->number);
}

/* The number in front of '%'. False: it is no percentage. */
static bool percent_of(const struct dv_int_or_str *value, uint64_t *percent)
{
    dv_str text = value->text;

    return value->is_text && text.n > 1 && text.p[text.n - 1] == '%' &&
           dv_str_to_u64(dv_str_slice(text, 0, text.n - 1), percent);
}

void dv_check_int_or_percent(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, const struct dv_int_or_str *value)
{
    uint64_t percent;

    if (!value->is_text)
        dv_check_not_negative(problems, path, name, value->number);
    else if (!percent_of(value, &percent))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value->text),
                       "a valid percent string must be a numeric string followed by an ending '%%' "
                       "(e.g. '1%%',  or '93%%', regex used for validation is '[0-9]+%%')");
}

void dv_check_not_over_all(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, const struct dv_int_or_str *value)
{
    uint64_t percent;

    if (percent_of(value, &percent) && percent > 100)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value->text),
                       "must not be greater than 100%%");
}

/* Whether it is a number or a percentage other than 0; what is neither counts as 0. */
static bool is_some(const struct dv_int_or_str *value)
{
    uint64_t percent = 0;

    return value->is_text ? percent_of(value, &percent) && percent > 0 : value->number != 0;
}

/* Whether it is the number 0 or its share; what is neither number nor share is something. */
static bool is_nothing(const struct dv_int_or_str *value)
{
    uint64_t percent;

    return value->is_text ? percent_of(value, &percent) && percent == 0 : value->number == 0;
}

/* -- Selectors and templates ---------------------------------------------------------------- */

static bool selects(const struct dv_api_label_selector *selector,
                    const struct dv_api_object_meta *meta, struct dv_arena *arena)
{
    const struct dv_label_selector *made = selector ? dv_label_selector_of(selector, arena) : NULL;

    return made && dv_label_selector_matches(made, meta->labels, meta->n_labels);
}

/* Checks that the selector selects the pods that the template makes. A selector that is none
 * selects nothing. */
static void check_selects(struct dv_problems *problems,
                          const struct dv_api_label_selector *selector,
                          const struct dv_api_pod_template_spec *template)
{
    struct dv_field_path path = dv_path_name(&spec_path, "template");
    struct dv_field_path metadata = dv_path_name(&path, "metadata");

    if (!selects(selector, &template->metadata, problems->arena))
        dv_problem_add(
            problems, DV_PROBLEM_INVALID, &metadata, "labels",
            dv_bad_entries(template->metadata.labels, template->metadata.n_labels, problems->arena),
            "`selector` does not match template `labels`");
}

static bool is_empty(const struct dv_api_label_selector *selector)
{
    return selector && selector->n_match_labels + selector->n_match_expressions == 0;
}

static void refuse_empty(struct dv_problems *problems, const struct dv_api_label_selector *selector,
                         const char *what)
{
    if (is_empty(selector))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "selector",
                       dv_bad_message(&dv_message_label_selector, selector, problems->arena),
                       "empty selector is invalid for %s", what);
}

static void check_selector_kept(struct dv_problems *problems,
                                const struct dv_api_label_selector *selector,
                                const struct dv_api_label_selector *old)
{
    static const struct dv_api_label_selector none;

    if (!dv_message_eq(&dv_message_label_selector, selector ? selector : &none, old ? old : &none))
        dv_immutable(problems, &spec_path, "selector",
                     selector
                         ? dv_bad_message(&dv_message_label_selector, selector, problems->arena)
                         : dv_bad_null());
}

/* Checks the template of what always keeps its pods running. */
static void check_lasting_template(struct dv_problems *problems,
                                   const struct dv_api_pod_template_spec *template,
                                   const char *what)
{
    static const dv_str always[] = {DV_STR_INIT("Always")};
    struct dv_field_path path = dv_path_name(&spec_path, "template");
    struct dv_field_path spec = dv_path_name(&path, "spec");

    dv_check_pod_template(problems, &path, template);
    if (!dv_str_eq(template->spec.restart_policy, always[0]))
        dv_not_supported(problems, &spec, "restartPolicy", template->spec.restart_policy, always,
                         DV_COUNT(always));
    if (template->spec.active_deadline_seconds)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &spec, "activeDeadlineSeconds",
                       dv_bad_none(), "activeDeadlineSeconds in %s is not Supported", what);
}

/* -- DaemonSets ----------------------------------------------------------------------------- */

static void check_daemon_update(struct dv_problems *problems, const struct dv_field_path *up,
                                const struct dv_api_rolling_update_daemon_set *update)
{
    struct dv_field_path path = dv_path_name(up, "rollingUpdate");

    dv_check_int_or_percent(problems, &path, "maxUnavailable", update->max_unavailable);
    dv_check_int_or_percent(problems, &path, "maxSurge", update->max_surge);
    if (is_some(update->max_unavailable) && is_some(update->max_surge))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "maxSurge",
                       bad_int_or_str(update->max_surge),
                       "may not be set when maxUnavailable is non-zero");
    else if (!is_some(update->max_unavailable) && !is_some(update->max_surge))
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &path, "maxUnavailable", dv_bad_none(),
                       "cannot be 0 when maxSurge is 0");
    dv_check_not_over_all(problems, &path, "maxUnavailable", update->max_unavailable);
    dv_check_not_over_all(problems, &path, "maxSurge", update->max_surge);
}

static void check_daemon_strategy(struct dv_problems *problems,
                                  const struct dv_api_daemon_set_update_strategy *strategy)
{
    struct dv_field_path path = dv_path_name(&spec_path, "updateStrategy");

    if (dv_str_eq(strategy->type, DV_STR("OnDelete")))
        return;
    if (!dv_str_eq(strategy->type, DV_STR("RollingUpdate"))) {
        dv_problem_add(
            problems, DV_PROBLEM_NOT_SUPPORTED, &path, NULL,
            dv_bad_message(&dv_message_daemon_set_update_strategy, strategy, problems->arena),
            "supported values: \"RollingUpdate\", \"OnDelete\"");
        return;
    }
    if (strategy->rolling_update)
        check_daemon_update(problems, &path, strategy->rolling_update);
    else
        dv_required(problems, &path, "rollingUpdate");
}

static void check_daemon_set(struct dv_problems *problems, const struct dv_api_daemon_set *set)
{
    struct dv_field_path selector = dv_path_name(&spec_path, "selector");
    const struct dv_api_daemon_set_spec *spec = &set->spec;

    if (spec->selector)
        dv_check_label_selector(problems, &selector, spec->selector, false);
    check_selects(problems, spec->selector, &spec->template);
    refuse_empty(problems, spec->selector, "daemonset");
    check_lasting_template(problems, &spec->template, "DaemonSet");
    dv_check_not_negative(problems, &spec_path, "minReadySeconds", spec->min_ready_seconds);
    check_daemon_strategy(problems, &spec->update_strategy);
    if (spec->revision_history_limit)
        dv_check_not_negative(problems, &spec_path, "revisionHistoryLimit",
                              *spec->revision_history_limit);
}

static void check_daemon_status(struct dv_problems *problems,
                                const struct dv_api_daemon_set_status *status)
{
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "status"};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"currentNumberScheduled", status->current_number_scheduled},
        {"numberMisscheduled",     status->number_misscheduled     },
        {"desiredNumberScheduled", status->desired_number_scheduled},
        {"numberReady",            status->number_ready            },
        {"observedGeneration",     status->observed_generation     },
        {"updatedNumberScheduled", status->updated_number_scheduled},
        {"numberAvailable",        status->number_available        },
        {"numberUnavailable",      status->number_unavailable      },
    };

    for (size_t i = 0; i < DV_COUNT(numbers); i++)
        dv_check_not_negative(problems, &path, numbers[i].name, numbers[i].value);
    if (status->collision_count)
        dv_check_not_negative(problems, &path, "collisionCount", *status->collision_count);
}

void dv_validate_daemon_set(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_daemon_set *set = what->value;
    const struct dv_api_daemon_set *old = what->old;

    switch (what->operation) {
    case DV_CREATE:
        dv_check_meta(problems, &set->metadata, &subdomain_rules);
        check_daemon_set(problems, set);
        return;
    case DV_UPDATE:
        dv_check_kind_meta_update(problems, &set->metadata, &old->metadata);
        check_selector_kept(problems, set->spec.selector, old->spec.selector);
        check_daemon_set(problems, set);
        return;
    case DV_UPDATE_STATUS:
        dv_check_kind_meta_update(problems, &set->metadata, &old->metadata);
        check_daemon_status(problems, &set->status);
        return;
    }
}

/* -- Deployments and ReplicaSets ------------------------------------------------------------ */

static void check_rolling(struct dv_problems *problems, const struct dv_field_path *up,
                          const struct dv_api_rolling_update_deployment *update)
{
    struct dv_field_path path = dv_path_name(up, "rollingUpdate");

    dv_check_int_or_percent(problems, &path, "maxUnavailable", update->max_unavailable);
    dv_check_int_or_percent(problems, &path, "maxSurge", update->max_surge);
    if (is_nothing(update->max_unavailable) && is_nothing(update->max_surge))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "maxUnavailable",
                       bad_int_or_str(update->max_unavailable),
                       "may not be 0 when `maxSurge` is 0");
    dv_check_not_over_all(problems, &path, "maxUnavailable", update->max_unavailable);
}

static void check_strategy(struct dv_problems *problems,
                           const struct dv_api_deployment_strategy *strategy)
{
    struct dv_field_path path = dv_path_name(&spec_path, "strategy");

    if (dv_str_eq(strategy->type, DV_STR("Recreate"))) {
        if (strategy->rolling_update)
            dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &path, "rollingUpdate", dv_bad_none(),
                           "may not be specified when strategy `type` is 'Recreate'");
    } else if (!dv_str_eq(strategy->type, DV_STR("RollingUpdate"))) {
        dv_problem_add(problems, DV_PROBLEM_NOT_SUPPORTED, &path, NULL,
                       dv_bad_message(&dv_message_deployment_strategy, strategy, problems->arena),
                       "supported values: \"Recreate\", \"RollingUpdate\"");
    } else if (strategy->rolling_update) {
        check_rolling(problems, &path, strategy->rolling_update);
    } else {
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &path, "rollingUpdate", dv_bad_none(),
                       "this should be defaulted and never be nil");
    }
}

/* What Deployments and ReplicaSets have in common. */
struct replicated {
    const int64_t *replicas;
    int64_t min_ready_seconds;
    const struct dv_api_label_selector *selector;
    const struct dv_api_pod_template_spec *template;
    const char *what; /* as the reference calls it */
};

static void check_replicated(struct dv_problems *problems, const struct replicated *of)
{
    struct dv_field_path selector = dv_path_name(&spec_path, "selector");

    if (of->replicas)
        dv_check_not_negative(problems, &spec_path, "replicas", *of->replicas);
    if (!of->selector)
        dv_required(problems, &spec_path, "selector");
    else
        dv_check_label_selector(problems, &selector, of->selector, false);
    refuse_empty(problems, of->selector, "deployment");
    if (!is_empty(of->selector))
        check_selects(problems, of->selector, of->template);
    check_lasting_template(problems, of->template, of->what);
    dv_check_not_negative(problems, &spec_path, "minReadySeconds", of->min_ready_seconds);
}

static void check_deployment(struct dv_problems *problems,
                             const struct dv_api_deployment_spec *spec)
{
    const struct replicated replicated = {spec->replicas, spec->min_ready_seconds, spec->selector,
                                          &spec->template, "Deployment"};

    check_replicated(problems, &replicated);
    check_strategy(problems, &spec->strategy);
    if (spec->revision_history_limit)
        dv_check_not_negative(problems, &spec_path, "revisionHistoryLimit",
                              *spec->revision_history_limit);
    if (!spec->progress_deadline_seconds)
        return;
    dv_check_not_negative(problems, &spec_path, "progressDeadlineSeconds",
                          *spec->progress_deadline_seconds);
    if (*spec->progress_deadline_seconds <= spec->min_ready_seconds)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "progressDeadlineSeconds",
                       dv_bad_i64(*spec->progress_deadline_seconds),
                       "must be greater than minReadySeconds");
}

/* A number of a status; those that are counted are at most `replicas`. */
struct counted {
    const char *name;
    int64_t value;
    bool is_counted;
};

static void check_counts(struct dv_problems *problems, const struct counted *counts, size_t n,
                         int64_t replicas, int64_t ready, int64_t available)
{
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "status"};

    for (size_t i = 0; i < n; i++)
        dv_check_not_negative(problems, &path, counts[i].name, counts[i].value);
    for (size_t i = 0; i < n; i++)
        if (counts[i].is_counted && counts[i].value > replicas)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &path, counts[i].name,
                           dv_bad_i64(counts[i].value), "cannot be greater than status.replicas");
    if (available > ready)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "availableReplicas",
                       dv_bad_i64(available), "cannot be greater than readyReplicas");
}

static void check_deployment_status(struct dv_problems *problems,
                                    const struct dv_api_deployment_status *status)
{
    const struct counted counts[] = {
        {"observedGeneration",  status->observed_generation,  false},
        {"replicas",            status->replicas,             false},
        {"updatedReplicas",     status->updated_replicas,     true },
        {"readyReplicas",       status->ready_replicas,       true },
        {"availableReplicas",   status->available_replicas,   true },
        {"unavailableReplicas", status->unavailable_replicas, false},
    };

    check_counts(problems, counts, DV_COUNT(counts), status->replicas, status->ready_replicas,
                 status->available_replicas);
}

void dv_validate_deployment(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_deployment *deployment = what->value;
    const struct dv_api_deployment *old = what->old;

    if (old)
        dv_check_kind_meta_update(problems, &deployment->metadata, &old->metadata);
    else
        dv_check_meta(problems, &deployment->metadata, &subdomain_rules);
    if (what->operation == DV_UPDATE_STATUS) {
        check_deployment_status(problems, &deployment->status);
        return;
    }
    check_deployment(problems, &deployment->spec);
    if (old)
        check_selector_kept(problems, deployment->spec.selector, old->spec.selector);
}

static void check_replica_set_status(struct dv_problems *problems,
                                     const struct dv_api_replica_set_status *status)
{
    const struct counted counts[] = {
        {"replicas",             status->replicas,               false},
        {"fullyLabeledReplicas", status->fully_labeled_replicas, true },
        {"readyReplicas",        status->ready_replicas,         true },
        {"availableReplicas",    status->available_replicas,     true },
        {"observedGeneration",   status->observed_generation,    false},
    };

    check_counts(problems, counts, DV_COUNT(counts), status->replicas, status->ready_replicas,
                 status->available_replicas);
}

void dv_validate_replica_set(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_replica_set *set = what->value;
    const struct dv_api_replica_set *old = what->old;
    const struct replicated replicated = {set->spec.replicas, set->spec.min_ready_seconds,
                                          set->spec.selector, &set->spec.template, "ReplicaSet"};

    if (old)
        dv_check_kind_meta_update(problems, &set->metadata, &old->metadata);
    else
        dv_check_meta(problems, &set->metadata, &subdomain_rules);
    if (what->operation == DV_UPDATE_STATUS) {
        check_replica_set_status(problems, &set->status);
        return;
    }
    check_replicated(problems, &replicated);
    if (old)
        check_selector_kept(problems, set->spec.selector, old->spec.selector);
}

/* -- ControllerRevisions -------------------------------------------------------------------- */

void dv_validate_controller_revision(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_controller_revision *revision = what->value;
    const struct dv_api_controller_revision *old = what->old;

    if (old)
        dv_check_kind_meta_update(problems, &revision->metadata, &old->metadata);
    else
        dv_check_meta(problems, &revision->metadata, &subdomain_rules);
    if (revision->data.n == 0)
        dv_required(problems, NULL, "data");
    dv_check_not_negative(problems, NULL, "revision", revision->revision);
    if (old && !dv_str_eq(revision->data, old->data))
        dv_immutable(problems, NULL, "data", dv_bad_str(revision->data));
}
