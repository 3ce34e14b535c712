/* validate_job_policy.c - what a Job says about its pods' ends: which failures count, when enough
 * has succeeded, and when a pod is replaced. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"
#include "base/str.h"
#include "resource/batch/job_checks.h"
#include "resource/job_indexes.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

/* As in the reference. */
#define RULES_MAX 20u
#define EXIT_CODES_MAX 255u
#define PATTERNS_MAX 20u
#define SUCCEEDED_BYTES_MAX (64u * 1024u)

static const struct dv_field_path spec_path = {.kind = PATH_NAME, .name = "spec"};

/* -- Failures ------------------------------------------------------------------------------- */

/* Checks a word of a rule, which has to be there. `words` as the reference lists them. */
static void check_word(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str word, const dv_str *words, size_t n)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf all;

    dv_buf_init(&all, 1024);
    for (size_t i = 0; i < n; i++) {
        if (dv_str_eq(words[i], word))
            return;
        dv_buf_printf(&all, "%s\"%.*s\"", i > 0 ? " " : "", DV_FMT(words[i]));
    }
    if (word.n > 0)
        dv_not_supported(problems, path, name, word, words, n);
    else
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, name, dv_bad_none(),
                       "valid values: [%.*s]", DV_FMT(dv_buf_str(&all)));
}

static bool has_container(const struct dv_api_pod_spec *spec, dv_str name)
{
    for (size_t i = 0; i < spec->n_containers; i++)
        if (dv_str_eq(spec->containers[i].name, name))
            return true;
    for (size_t i = 0; i < spec->n_init_containers; i++)
        if (dv_str_eq(spec->init_containers[i].name, name))
            return true;
    return false;
}

static struct dv_bad_value bad_numbers(const int64_t *values, size_t n, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    if (n == 0)
        return dv_bad_null();
    dv_buf_init(&buf, 64u * 1024u);
    for (size_t i = 0; i < n && i <= EXIT_CODES_MAX; i++)
        dv_buf_printf(&buf, "%s%lld", i > 0 ? "," : "[", (long long)values[i]);
    dv_buf_add_char(&buf, ']');
    return (struct dv_bad_value){.kind = BAD_JSON, .text = dv_str_copy(dv_buf_str(&buf), arena)};
}

static void check_codes(struct dv_problems *problems, const struct dv_field_path *path,
                        const struct dv_api_pod_failure_policy_on_exit_codes_requirement *codes)
{
    struct dv_field_path values = dv_path_name(path, "values");
    size_t n = dv_size_min(codes->n_values, EXIT_CODES_MAX);
    bool is_ordered = true;

    if (codes->n_values == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &values, NULL, dv_bad_null(),
                       "at least one value is required");
    if (codes->n_values > EXIT_CODES_MAX)
        dv_too_many(problems, &values, NULL, codes->n_values, EXIT_CODES_MAX);
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path value = dv_path_index(&values, i);
        bool is_repeated = false;

        for (size_t j = 0; j < i; j++)
            is_repeated |= codes->values[j] == codes->values[i];
        if (dv_str_eq(codes->operator, DV_STR("In")) && codes->values[i] == 0)
            dv_problem_add(problems, DV_PROBLEM_INVALID, &value, NULL, dv_bad_i64(0),
                           "must not be 0 for the In operator");
        if (is_repeated)
            dv_problem_add(problems, DV_PROBLEM_DUPLICATE, &value, NULL,
                           dv_bad_i64(codes->values[i]), "%s", "");
        is_ordered &= i == 0 || codes->values[i - 1] <= codes->values[i];
    }
    if (!is_ordered)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &values, NULL,
                       bad_numbers(codes->values, codes->n_values, problems->arena),
                       "must be ordered");
}

static void
check_exit_codes(struct dv_problems *problems, const struct dv_field_path *path,
                 const struct dv_api_pod_spec *spec,
                 const struct dv_api_pod_failure_policy_on_exit_codes_requirement *codes)
{
    static const dv_str operators[] = {DV_STR_INIT("In"), DV_STR_INIT("NotIn")};

    check_word(problems, path, "operator", codes->operator, operators, DV_COUNT(operators));
    if (codes->container_name.p && !has_container(spec, codes->container_name))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "containerName",
                       dv_bad_str(codes->container_name),
                       "must be one of the container or initContainer names in the pod template");
    check_codes(problems, path, codes);
}

static void check_patterns(struct dv_problems *problems, const struct dv_field_path *path,
                           const struct dv_api_pod_failure_policy_rule *rule)
{
    static const dv_str statuses[] = {DV_STR_INIT("False"), DV_STR_INIT("True"),
                                      DV_STR_INIT("Unknown")};
    size_t n = dv_size_min(rule->n_on_pod_conditions, PATTERNS_MAX);

    if (rule->n_on_pod_conditions > PATTERNS_MAX)
        dv_too_many(problems, path, NULL, rule->n_on_pod_conditions, PATTERNS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_index(path, i);

        dv_check_label_name(problems, &item, "type", rule->on_pod_conditions[i].type);
        check_word(problems, &item, "status", rule->on_pod_conditions[i].status, statuses,
                   DV_COUNT(statuses));
    }
}

static void check_rule(struct dv_problems *problems, const struct dv_field_path *path,
                       const struct dv_api_job_spec *spec,
                       const struct dv_api_pod_failure_policy_rule *rule)
{
    static const dv_str actions[] = {DV_STR_INIT("Count"), DV_STR_INIT("FailIndex"),
                                     DV_STR_INIT("FailJob"), DV_STR_INIT("Ignore")};
    struct dv_field_path codes = dv_path_name(path, "onExitCodes");
    struct dv_field_path conditions = dv_path_name(path, "onPodConditions");

    if (dv_str_eq(rule->action, actions[1]) && !spec->backoff_limit_per_index)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "action", dv_bad_str(rule->action),
                       "requires the backoffLimitPerIndex to be set");
    check_word(problems, path, "action", rule->action, actions, DV_COUNT(actions));
    if (rule->on_exit_codes)
        check_exit_codes(problems, &codes, &spec->template.spec, rule->on_exit_codes);
    check_patterns(problems, &conditions, rule);
    if (rule->on_exit_codes && rule->n_on_pod_conditions > 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_none(),
                       "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!rule->on_exit_codes && rule->n_on_pod_conditions == 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, NULL, dv_bad_none(),
                       "specifying one of OnExitCodes and OnPodConditions is required");
}

static void check_failure_policy(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    const struct dv_api_pod_failure_policy *policy = spec->pod_failure_policy;
    struct dv_field_path path = dv_path_name(&spec_path, "podFailurePolicy");
    struct dv_field_path rules = dv_path_name(&path, "rules");
    size_t n = dv_size_min(policy->n_rules, RULES_MAX);

    if (policy->n_rules > RULES_MAX)
        dv_too_many(problems, &rules, NULL, policy->n_rules, RULES_MAX);
    for (size_t i = 0; i < n; i++) {
        struct dv_field_path rule = dv_path_index(&rules, i);

        check_rule(problems, &rule, spec, &policy->rules[i]);
    }
}

/* -- Successes ------------------------------------------------------------------------------ */

static void check_success_count(struct dv_problems *problems, const struct dv_field_path *path,
                                const struct dv_api_success_policy_rule *rule, int64_t completions,
                                int64_t n_indexes)
{
    int64_t count = *rule->succeeded_count;

    dv_check_not_negative(problems, path, "succeededCount", count);
    if (count > completions)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "succeededCount", dv_bad_i64(count),
                       "must be less than or equal to %lld (the number of specified completions)",
                       (long long)completions);
    if (rule->succeeded_indexes.p && count > n_indexes)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "succeededCount", dv_bad_i64(count),
                       "must be less than or equal to %lld (the number of indexes in the specified "
                       "succeededIndexes field)",
                       (long long)n_indexes);
}

static void check_success_rule(struct dv_problems *problems, const struct dv_field_path *path,
                               const struct dv_api_success_policy_rule *rule, int64_t completions)
{
    dv_str indexes = rule->succeeded_indexes;
    const char *fault;
    int64_t n = 0;

    if (!indexes.p && !rule->succeeded_count)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, path, NULL, dv_bad_none(),
                       "at least one of succeededCount or succeededIndexes must be specified");
    if (indexes.n > SUCCEEDED_BYTES_MAX)
        dv_too_long(problems, path, "succeededIndexes", SUCCEEDED_BYTES_MAX);
    fault = indexes.n > SUCCEEDED_BYTES_MAX
                ? NULL
                : dv_job_indexes_fault(indexes, completions, problems->arena, &n);
    if (fault)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "succeededIndexes", dv_bad_str(indexes),
                       "error parsing succeededIndexes: %s", fault);
    if (rule->succeeded_count)
        check_success_count(problems, path, rule, completions, n);
}

static void check_success_policy(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    const struct dv_api_success_policy *policy = spec->success_policy;
    struct dv_field_path path = dv_path_name(&spec_path, "successPolicy");
    struct dv_field_path rules = dv_path_name(&path, "rules");
    size_t n = dv_size_min(policy->n_rules, RULES_MAX);

    if (!dv_str_eq(spec->completion_mode, DV_STR("Indexed"))) {
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, NULL,
                       dv_bad_message(&dv_message_success_policy, policy, problems->arena),
                       "requires indexed completion mode");
        return;
    }
    if (policy->n_rules == 0)
        dv_problem_add(problems, DV_PROBLEM_REQUIRED, &rules, NULL, dv_bad_none(),
                       "at least one rules must be specified when the successPolicy is specified");
    if (policy->n_rules > RULES_MAX)
        dv_too_many(problems, &rules, NULL, policy->n_rules, RULES_MAX);
    for (size_t i = 0; spec->completions && i < n; i++) {
        struct dv_field_path rule = dv_path_index(&rules, i);

        check_success_rule(problems, &rule, &policy->rules[i], *spec->completions);
    }
}

void dv_check_job_policies(struct dv_problems *problems, const struct dv_api_job_spec *spec)
{
    static const dv_str replacements[] = {DV_STR_INIT("Failed"),
                                          DV_STR_INIT("TerminatingOrFailed")};
    size_t n = spec->pod_failure_policy ? 1 : 2;
    bool is_known = false;

    if (spec->pod_failure_policy)
        check_failure_policy(problems, spec);
    if (spec->success_policy)
        check_success_policy(problems, spec);
    for (size_t i = 0; i < n; i++)
        is_known |= dv_str_eq(spec->pod_replacement_policy, replacements[i]);
    if (spec->pod_replacement_policy.p && !is_known)
        dv_not_supported(problems, &spec_path, "podReplacementPolicy", spec->pod_replacement_policy,
                         replacements, n);
}
