/* validate_options.c - the options of requests. */
#include "base/buf.h"
#include "base/str.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/validate.h"

/* The length of all values of an option in a message; the rest is left out. */
#define TEXT_BYTES_MAX (64u << 10)

static void add(struct dv_problems *problems, enum dv_problem_type type, dv_str field,
                dv_str detail)
{
    *dv_vec_add_in(problems, problems->arena) = (struct dv_problem){type, field, detail};
}

void dv_validate_dry_run(const dv_str *values, size_t n, struct dv_problems *problems)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    bool is_right = true;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_char(&buf, '[');
    for (size_t i = 0; i < n; i++) {
        is_right = is_right && dv_str_eq(values[i], DV_STR("All"));
        dv_buf_add_c(&buf, i > 0 ? "," : "");
        dv_buf_add_json(&buf, values[i]);
    }
    dv_buf_add_char(&buf, ']');
    if (!is_right)
        add(problems, DV_PROBLEM_NOT_SUPPORTED, DV_STR("dryRun"),
            dv_str_printf(problems->arena, "Unsupported value: %s: supported values: \"All\"",
                          dv_buf_c(&buf)));
}

void dv_validate_delete_options(const struct dv_api_delete_options *options,
                                struct dv_problems *problems)
{
    dv_str policy = options->propagation_policy;

    if (policy.p && options->orphan_dependents)
        add(problems, DV_PROBLEM_INVALID, DV_STR("propagationPolicy"),
            dv_str_printf(problems->arena,
                          "Invalid value: \"%.*s\": orphanDependents and deletionPropagation "
                          "cannot be both set",
                          DV_FMT(policy)));
    if (policy.p && !dv_str_eq(policy, DV_STR("Foreground")) &&
        !dv_str_eq(policy, DV_STR("Background")) && !dv_str_eq(policy, DV_STR("Orphan")))
        add(problems, DV_PROBLEM_NOT_SUPPORTED, DV_STR("propagationPolicy"),
            dv_str_printf(problems->arena,
                          "Unsupported value: \"%.*s\": supported values: \"Foreground\", "
                          "\"Background\", \"Orphan\", \"nil\"",
                          DV_FMT(policy)));
    dv_validate_dry_run(options->dry_run, options->n_dry_run, problems);
}
