/* validate_job.c - Jobs: how many pods, which failures count, and what of it may change. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/name.h"
#include "base/str.h"
#include "resource/batch/job_checks.h"
#include "resource/resource.h"
#include "resource/select.h"
#include "resource/validate/checks.h"
#include "resource/validate/pod_checks.h"
#include "resource/validate/validate_kinds.h"

/* As in the reference. */
#define INDEXED_MAX 100000
#define INDEXED_MANY 100000 /* with more completions than this, the limits below hold */
#define MANY_PARALLELISM_MAX 10000
#define MANY_FAILED_MAX 10000
#define MANAGER_BYTES_MAX 63u

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};
static const struct dv_field_path metadata_path = {.kind = PATH_NAME, .name = "metadata"};

static bool is_indexed(const struct dv_api_job_spec *spec)
{
    return dv_str_eq(spec->completion_mode, DV_STR("Indexed"));
}

static bool is_true(const bool *value)
{
    return value && *value;
}

static void check_count(struct dv_problems *problems, const char *name, const int64_t *value)
{
    if (value)
        dv_check_not_negative(problems, &spec_path, name, *value);
}

static void add_invalid(struct dv_problems *problems, const char *name, int64_t value,
                        const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, name, dv_bad_i64(value), "%s", text);
}

/* -- Selectors ------------------------------------------------------------------------------ */

static const struct dv_str_entry *label_of(const struct dv_api_job *job, dv_str key)
{
    const struct dv_api_object_meta *meta = &job->spec.template.metadata;

    return dv_entry_find(meta->labels, meta->n_labels, key);
}

/* Adds the label to those that the selector is to match. */
static void check_label(struct dv_problems *problems, const struct dv_api_job *job, dv_str key,
                        dv_str wanted)
{
    const struct dv_api_object_meta *meta = &job->spec.template.metadata;
    struct dv_field_path template = dv_path_name(&spec_path, "template");
    struct dv_field_path of_meta = dv_path_name(&template, "metadata");
    struct dv_field_path labels = dv_path_name(&of_meta, "labels");
    struct dv_field_path path = dv_path_key(&labels, key);
    const struct dv_str_entry *label = label_of(job, key);

    if (!label)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &path, NULL, dv_bad_none(), "must be '%.*s'",
                       DV_FMT(wanted));
    else if (!dv_str_eq(label->value, wanted))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL,
                       dv_bad_entries(meta->labels, meta->n_labels, problems->arena),
                       "must be '%.*s'", DV_FMT(wanted));
}

/* Checks that the labels and the selector are those that are generated, so that no two Jobs have
 * the same pods. `is_prefixed`: with the newer names too. */
static void check_generated(struct dv_problems *problems, const struct dv_api_job *job,
                            bool is_prefixed)
{
    struct dv_str_entry labels[] = {
        {DV_STR(DV_JOB_UID_LABEL),      job->metadata.uid },
        {DV_STR(DV_JOB_NAME_LABEL),     job->metadata.name},
        {DV_STR(DV_OLD_JOB_UID_LABEL),  job->metadata.uid },
        {DV_STR(DV_OLD_JOB_NAME_LABEL), job->metadata.name},
    };
    const struct dv_str_entry *first = is_prefixed ? labels : labels + 2;
    const struct dv_label_selector *selector;

    if (is_true(job->spec.manual_selector) || !job->spec.selector)
        return;
    if (job->metadata.uid.n == 0)
        dv_required(problems, &metadata_path, "uid");
    check_label(problems, job, labels[2].key, labels[2].value);
    check_label(problems, job, labels[3].key, labels[3].value);
    for (size_t i = 0; is_prefixed && i < 2; i++)
        check_label(problems, job, labels[i].key, labels[i].value);
    selector = dv_label_selector_of(job->spec.selector, problems->arena);
    if (selector && !dv_label_selector_matches(selector, first, is_prefixed ? 4 : 2))
        dv_problem_add(
            problems, DV_PROBLEM_INVALID, &spec_path, "selector",
            dv_bad_message(&dv_message_label_selector, job->spec.selector, problems->arena),
            "`selector` not auto-generated");
}

static void check_selector(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    const struct dv_api_object_meta *meta = &spec->template.metadata;
    struct dv_field_path path = dv_path_name(&spec_path, "selector");
    struct dv_field_path template = dv_path_name(&spec_path, "template");
    struct dv_field_path of_meta = dv_path_name(&template, "metadata");
    const struct dv_label_selector *selector = NULL;

    if (!spec->selector) {
        dv_required(problems, &spec_path, "selector");
    } else {
        dv_check_label_selector(problems, &path, spec->selector, false);
        selector = dv_label_selector_of(spec->selector, problems->arena);
        if (!selector)
            return;
    }
    if (!selector || !dv_label_selector_matches(selector, meta->labels, meta->n_labels))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &of_meta, "labels",
                       dv_bad_entries(meta->labels, meta->n_labels, problems->arena),
                       "`selector` does not match template `labels`");
}

/* -- Counts --------------------------------------------------------------------------------- */

/* Checks what keeps the texts of an Indexed Job's status small. */
static void check_many(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    if (!spec->max_failed_indexes)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &spec_path, "maxFailedIndexes", dv_bad_none(),
                       "must be specified when completions is above %d", INDEXED_MANY);
    if (spec->parallelism && *spec->parallelism > MANY_PARALLELISM_MAX)
        add_invalid(problems, "parallelism", *spec->parallelism,
                    "must be less than or equal to 10000 when completions are above 100000 and "
                    "used with backoff limit per index");
    if (spec->max_failed_indexes && *spec->max_failed_indexes > MANY_FAILED_MAX)
        add_invalid(problems, "maxFailedIndexes", *spec->max_failed_indexes,
                    "must be less than or equal to 10000 when completions are above 100000 and "
                    "used with backoff limit per index");
}

static void check_indexed(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    const int64_t *completions = spec->completions;
    const int64_t *failed = spec->max_failed_indexes;

    if (!completions)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &spec_path, "completions", dv_bad_none(),
                       "when completion mode is Indexed");
    if (spec->parallelism && *spec->parallelism > INDEXED_MAX)
        add_invalid(problems, "parallelism", *spec->parallelism,
                    "must be less than or equal to 100000 when completion mode is Indexed");
    if (completions && failed && *failed > *completions)
        add_invalid(problems, "maxFailedIndexes", *failed,
                    "must be less than or equal to completions");
    if (failed && *failed > INDEXED_MAX)
        add_invalid(problems, "maxFailedIndexes", *failed, "must be less than or equal to 100000");
    if (completions && *completions > INDEXED_MANY && spec->backoff_limit_per_index)
        check_many(problems, spec);
}

static void check_mode(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    static const dv_str modes[] = {DV_STR_INIT("NonIndexed"), DV_STR_INIT("Indexed")};

    if (is_indexed(spec)) {
        check_indexed(problems, spec);
        return;
    }
    if (spec->completion_mode.p && !dv_str_eq(spec->completion_mode, modes[0])) {
        dv_not_supported(problems, &spec_path, "completionMode", spec->completion_mode, modes,
                         DV_COUNT(modes));
        return;
    }
    if (spec->backoff_limit_per_index)
        add_invalid(problems, "backoffLimitPerIndex", *spec->backoff_limit_per_index,
                    "requires indexed completion mode");
    if (spec->max_failed_indexes)
        add_invalid(problems, "maxFailedIndexes", *spec->max_failed_indexes,
                    "requires indexed completion mode");
}

static void check_manager(struct dv_problems *problems, dv_str manager)
{
    static const char path_characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:";
    size_t slash = dv_str_find_char(manager, '/');
    dv_str host = dv_str_slice(manager, 0, slash);
    dv_str path = dv_str_slice(manager, slash + 1, manager.n);
    bool is_path = true;

    if (manager.n == 0) {
        dv_required(problems, &spec_path, "managedBy");
    } else if (host.n == 0 || path.n == 0) {
        dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "managedBy", dv_bad_str(manager),
                       "must be a domain-prefixed path (such as \"acme.io/foo\")");
    } else {
        dv_check_dns_subdomain(problems, &spec_path, "managedBy", host);
        for (size_t i = 0; i < path.n; i++)
            is_path = is_path && memchr(path_characters, path.p[i], sizeof(path_characters) - 1);
        if (!is_path)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &spec_path, "managedBy", dv_bad_str(path),
                           "Invalid path (regex used for validation is "
                           "'[A-Za-z0-9/\\-._~%%!$&'()*+,;=:]+')");
    }
    if (manager.n > MANAGER_BYTES_MAX)
        dv_too_long(problems, &spec_path, "managedBy", MANAGER_BYTES_MAX);
}

/* -- Templates ------------------------------------------------------------------------------ */

static void check_template(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    static const dv_str policies[] = {DV_STR_INIT("OnFailure"), DV_STR_INIT("Never")};
    struct dv_field_path path = dv_path_name(&spec_path, "template");
    struct dv_field_path of_spec = dv_path_name(&path, "spec");
    dv_str policy = spec->template.spec.restart_policy;

    dv_check_pod_template(problems, &path, &spec->template);
    if (policy.n == 0 || dv_str_eq(policy, DV_STR("Always")))
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &of_spec, "restartPolicy", dv_bad_none(),
                       "valid values: \"OnFailure\", \"Never\"");
    else if (!dv_str_eq(policy, policies[0]) && !dv_str_eq(policy, policies[1]))
        dv_not_supported(problems, &of_spec, "restartPolicy", policy, policies, DV_COUNT(policies));
    else if (spec->pod_failure_policy && !dv_str_eq(policy, policies[1]))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &of_spec, "restartPolicy", dv_bad_str(policy),
                       "only \"Never\" is supported when podFailurePolicy is specified");
}

/* The old template with what a Job that does not run may change set as in the new one: where its
 * pods go, and what its containers ask for. */
static struct dv_api_pod_template_spec with_allowed(const struct dv_api_pod_template_spec *old,
                                                    const struct dv_api_pod_template_spec *now,
                                                    struct dv_arena *arena)
{
    struct dv_api_pod_template_spec copy;
    struct dv_api_affinity *affinity = DV_NEW(arena, struct dv_api_affinity);
    struct dv_api_pod_spec *spec = &copy.spec;

    dv_message_copy(&dv_message_pod_template_spec, old, arena, &copy);
    if (spec->affinity)
        *affinity = *spec->affinity;
    affinity->node_affinity = now->spec.affinity ? now->spec.affinity->node_affinity : NULL;
    spec->affinity = now->spec.affinity || affinity->pod_affinity || affinity->pod_anti_affinity
                         ? affinity
                         : NULL;
    spec->node_selector = now->spec.node_selector;
    spec->n_node_selector = now->spec.n_node_selector;
    spec->tolerations = now->spec.tolerations;
    spec->n_tolerations = now->spec.n_tolerations;
    spec->scheduling_gates = now->spec.scheduling_gates;
    spec->n_scheduling_gates = now->spec.n_scheduling_gates;
    copy.metadata.annotations = now->metadata.annotations;
    copy.metadata.n_annotations = now->metadata.n_annotations;
    copy.metadata.labels = now->metadata.labels;
    copy.metadata.n_labels = now->metadata.n_labels;
    for (size_t i = 0; spec->n_containers == now->spec.n_containers && i < spec->n_containers; i++)
        if (dv_str_eq(spec->containers[i].name, now->spec.containers[i].name))
            spec->containers[i].resources = now->spec.containers[i].resources;
    for (size_t i = 0;
         spec->n_init_containers == now->spec.n_init_containers && i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].name, now->spec.init_containers[i].name))
            spec->init_containers[i].resources = now->spec.init_containers[i].resources;
    return copy;
}

/* Whether no pod of the Job runs, and none was made since it was last suspended. */
static bool is_at_rest(const struct dv_api_job *job)
{
    return is_true(job->spec.suspend) && job->status.active == 0 &&
           (!job->status.start_time.is_set || dv_job_has_condition(&job->status, "Suspended"));
}

static void check_template_kept(struct dv_problems *problems, const struct dv_api_job *job,
                                const struct dv_api_job *old)
{
    const struct dv_api_pod_template_spec *template = &job->spec.template;
    struct dv_field_path path = dv_path_name(&spec_path, "template");
    struct dv_api_pod_template_spec allowed;

    if (!is_at_rest(old)) {
        if (!dv_message_eq(&dv_message_pod_template_spec, template, &old->spec.template))
            dv_immutable(problems, &path, NULL,
                         dv_bad_message(&dv_message_pod_template_spec, template, problems->arena));
        return;
    }
    allowed = with_allowed(&old->spec.template, template, problems->arena);
    if (!dv_message_eq(&dv_message_pod_spec, &template->spec, &allowed.spec))
        dv_immutable(problems, &path, "spec",
                     dv_bad_message(&dv_message_pod_spec, &template->spec, problems->arena));
}

/* -- Updates -------------------------------------------------------------------------------- */

static bool is_same_number(const int64_t *a, const int64_t *b)
{
    return a && b ? *a == *b : a == b;
}

static struct dv_bad_value bad_number(const int64_t *value)
{
    return value ? dv_bad_i64(*value) : dv_bad_null();
}

static void check_message_kept(struct dv_problems *problems, const char *name,
                               const struct dv_message *message, const void *now, const void *old)
{
    if (now && old ? dv_message_eq(message, now, old) : now == old)
        return;
    dv_immutable(problems, &spec_path, name,
                 now ? dv_bad_message(message, now, problems->arena) : dv_bad_null());
}

static void check_text_kept(struct dv_problems *problems, const char *name, dv_str now, dv_str old)
{
    if (!dv_str_eq(now, old) || (now.p == NULL) != (old.p == NULL))
        dv_immutable(problems, &spec_path, name, now.p ? dv_bad_str(now) : dv_bad_null());
}

static void check_kept(struct dv_problems *problems, const struct dv_api_job *job,
                       const struct dv_api_job *old)
{
    const struct dv_api_job_spec *spec = &job->spec;
    const struct dv_api_job_spec *had = &old->spec;
    bool is_same = is_same_number(spec->completions, had->completions);

    if (!is_indexed(spec) && !is_same)
        dv_immutable(problems, &spec_path, "completions", bad_number(spec->completions));
    else if (!is_same && spec->completions && spec->parallelism &&
             *spec->completions != *spec->parallelism)
        add_invalid(problems, "completions", *spec->completions,
                    "can only be modified in tandem with spec.parallelism");
    check_message_kept(problems, "selector", &dv_message_label_selector, spec->selector,
                       had->selector);
    check_template_kept(problems, job, old);
    check_text_kept(problems, "completionMode", spec->completion_mode, had->completion_mode);
    check_message_kept(problems, "podFailurePolicy", &dv_message_pod_failure_policy,
                       spec->pod_failure_policy, had->pod_failure_policy);
    if (!is_same_number(spec->backoff_limit_per_index, had->backoff_limit_per_index))
        dv_immutable(problems, &spec_path, "backoffLimitPerIndex",
                     bad_number(spec->backoff_limit_per_index));
    check_text_kept(problems, "managedBy", spec->managed_by, had->managed_by);
    check_message_kept(problems, "successPolicy", &dv_message_success_policy, spec->success_policy,
                       had->success_policy);
}

/* -- All of it ------------------------------------------------------------------------------ */

static void check_spec(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    check_count(problems, "parallelism", spec->parallelism);
    check_count(problems, "completions", spec->completions);
    check_count(problems, "activeDeadlineSeconds", spec->active_deadline_seconds);
    check_count(problems, "backoffLimit", spec->backoff_limit);
    check_count(problems, "ttlSecondsAfterFinished", spec->ttl_seconds_after_finished);
    check_count(problems, "backoffLimitPerIndex", spec->backoff_limit_per_index);
    check_count(problems, "maxFailedIndexes", spec->max_failed_indexes);
    if (spec->max_failed_indexes && !spec->backoff_limit_per_index)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &spec_path, "backoffLimitPerIndex",
                       dv_bad_none(), "when maxFailedIndexes is specified");
    if (spec->managed_by.p)
        check_manager(problems, spec->managed_by);
    check_mode(problems, spec);
    dv_check_job_policies(problems, spec);
    check_template(problems, spec);
    check_selector(problems, spec);
}

/* The name with the highest index is the name of a host, of which a DNS label is wanted. */
static void check_host_names(struct dv_problems *problems, const struct dv_api_job *job)
{
    dv_str host;

    if (!is_indexed(&job->spec) || !job->spec.completions || *job->spec.completions <= 0)
        return;
    host = dv_str_printf(problems->arena, "%.*s-%lld", DV_FMT(job->metadata.name),
                         (long long)*job->spec.completions - 1);
    if (host.n > 63 || !dv_has_label_form(host, false))
        dv_problem_add(problems, DV_PROBLEM_INVALID, &metadata_path, "name",
                       dv_bad_str(job->metadata.name),
                       "will not able to create pod with invalid DNS label: %.*s", DV_FMT(host));
}

static void check_job(struct dv_problems *problems, const struct dv_api_job *job, bool is_prefixed)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};

    dv_check_meta(problems, &job->metadata, &rules);
    check_generated(problems, job, is_prefixed);
    check_spec(problems, &job->spec);
    check_host_names(problems, job);
}

void dv_validate_job(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_job *job = what->value;
    const struct dv_api_job *old = what->old;

    switch (what->operation) {
    case DV_CREATE:
        check_job(problems, job, true);
        return;
    case DV_UPDATE:
        check_job(problems, job,
                  label_of(old, DV_STR(DV_JOB_NAME_LABEL)) &&
                      label_of(old, DV_STR(DV_JOB_UID_LABEL)));
        dv_check_kind_meta_update(problems, &job->metadata, &old->metadata);
        check_spec(problems, &job->spec); /* once more, as the reference does */
        check_kept(problems, job, old);
        return;
    case DV_UPDATE_STATUS:
        dv_check_kind_meta_update(problems, &job->metadata, &old->metadata);
        dv_check_job_status(problems, job, old);
        return;
    }
}
