/* verify.c - which cases there are and which are wanted: lists, explanations. */
#include "verify/verify.h"

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "verify/cases/cases.h"
#include "verify/kit/verify_case.h"
#include "verify/runner/selection.h"

static const char *const kind_names[DV_VERIFY_N_KINDS] = {
    [DV_VERIFY_DEVICE_PLUGIN] = "device-plugin", [DV_VERIFY_DRA] = "dra"};

const char *dv_verify_kind_name(enum dv_verify_kind kind)
{
    return kind_names[kind];
}

bool dv_verify_kind_find(dv_str name, enum dv_verify_kind *kind)
{
    for (size_t i = 0; i < DV_COUNT(kind_names); i++)
        if (dv_str_eq(name, dv_str_from_c(kind_names[i]))) {
            *kind = (enum dv_verify_kind)i;
            return true;
        }
    return false;
}

/* ---- which are wanted ---- */

/* "allocate.one", or "allocate.*" for all that begin so. */
static bool matches(dv_str pattern, dv_str id)
{
    if (dv_str_ends_with(pattern, DV_STR("*")))
        return dv_str_starts_with(id, dv_str_slice(pattern, 0, pattern.n - 1));
    return dv_str_eq(pattern, id);
}

static bool is_among(const dv_str *patterns, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (matches(patterns[i], dv_str_from_c(id)))
            return true;
    return false;
}

bool dv_selection_is_named(const struct dv_verify_options *options, const char *id)
{
    for (size_t i = 0; i < options->n_only; i++)
        if (dv_str_eq(options->only[i], dv_str_from_c(id)))
            return true;
    return false;
}

const struct dv_verify_case *dv_selection_next(const struct dv_verify_options *options,
                                               struct dv_selection *at)
{
    for (; at->group < dv_n_verify_groups; at->group++, at->place = 0) {
        const struct dv_verify_group *group = dv_verify_groups[at->group];

        while (group->kind == options->kind && at->place < group->n_cases) {
            const struct dv_verify_case *test = &group->cases[at->place++];

            if ((options->n_only == 0 || is_among(options->only, options->n_only, test->id)) &&
                !is_among(options->skip, options->n_skip, test->id))
                return test;
        }
    }
    return NULL;
}

/* Names of cases have a point, or a star after it; words for what drivers offer have none. */
static bool is_of_case(dv_str required)
{
    return dv_str_find_char(required, '.') < required.n;
}

bool dv_selection_is_required(const struct dv_verify_options *options, const char *id)
{
    for (size_t i = 0; i < options->n_required; i++)
        if (is_of_case(options->required[i]) && matches(options->required[i], dv_str_from_c(id)))
            return true;
    return false;
}

static bool has_some(enum dv_verify_kind kind, dv_str pattern)
{
    const struct dv_verify_options one = {.kind = kind, .only = &pattern, .n_only = 1};
    struct dv_selection at = {0};

    return dv_selection_next(&one, &at) != NULL;
}

dv_str dv_selection_stranger(const struct dv_verify_options *options)
{
    for (size_t i = 0; i < options->n_only; i++)
        if (!has_some(options->kind, options->only[i]))
            return options->only[i];
    for (size_t i = 0; i < options->n_skip; i++)
        if (!has_some(options->kind, options->skip[i]))
            return options->skip[i];
    for (size_t i = 0; i < options->n_required; i++)
        if (is_of_case(options->required[i]) && !has_some(options->kind, options->required[i]))
            return options->required[i];
    return DV_STR_NONE;
}

bool dv_verify_check_cases(const struct dv_verify_options *options, struct dv_err *err)
{
    dv_str stranger = dv_selection_stranger(options);

    return stranger.n == 0 ||
           dv_fail(err, DV_INVALID_ARGUMENT, "no case of %s is called \"%.*s\"; see --list",
                   dv_verify_kind_name(options->kind), DV_FMT(stranger));
}

/* ---- for people ---- */

void dv_verify_list(const struct dv_verify_options *options, struct dv_buf *buf)
{
    struct dv_selection at = {0};
    const struct dv_verify_case *test;

    while ((test = dv_selection_next(options, &at)))
        dv_buf_printf(buf, "%-31s %s\n", test->id, test->proves);
}

static void explain(enum dv_verify_kind kind, const struct dv_verify_case *test, struct dv_buf *buf)
{
    static const struct {
        unsigned need;
        const char *text;
    } needs[] = {
        {DV_NEEDS_PROCESS,  "a driver that davit starts: --exec"                        },
        {DV_NEEDS_RESTART,
         "a driver that davit starts, or with --attach hooks that do: start, stop, kill"},
        {DV_NEEDS_PREFER,   "a plugin that offers GetPreferredAllocation"               },
        {DV_NEEDS_PRESTART, "a plugin that wants PreStartContainer"                     },
        {DV_NEEDS_HEALTH,   "a driver that offers device health"                        },
        {DV_NEEDS_SLICES,   "a driver that publishes ResourceSlices of its node"        },
        {DV_NEEDS_INSTANCE, "{instance} in --exec, by which two instances differ"       },
        {DV_NEEDS_CLASSIC,  "a plugin that registers by kubelet.sock"                   },
        {DV_NEEDS_WATCHER,  "a plugin that registers by a socket in plugins_registry"   },
        {DV_NEEDS_TWO,      "two devices"                                               },
    };

    dv_buf_printf(buf, "%s (%s)\n\n", test->id, kind_names[kind]);
    dv_buf_printf(buf, "It proves that %s.\n\n", test->proves);
    dv_buf_printf(buf, "Why it matters: %s.\n\n", test->matters);
    dv_buf_printf(buf, "What the protocol says: %s.\n", test->protocol);
    for (size_t i = 0; i < DV_COUNT(needs); i++)
        if (test->needs & needs[i].need)
            dv_buf_printf(buf, "\nIt needs %s.", needs[i].text);
    if (test->needs)
        dv_buf_add_char(buf, '\n');
}

bool dv_verify_explain(dv_str id, struct dv_buf *buf)
{
    size_t n = 0;

    for (size_t i = 0; i < DV_VERIFY_N_KINDS; i++) {
        const struct dv_verify_options one = {
            .kind = (enum dv_verify_kind)i, .only = &id, .n_only = 1};
        struct dv_selection at = {0};
        const struct dv_verify_case *test;

        while ((test = dv_selection_next(&one, &at))) {
            if (n++ > 0)
                dv_buf_add_char(buf, '\n');
            explain(one.kind, test, buf);
        }
    }
    return n > 0;
}
