/* kube_query.c - reads the options of requests from the query: of lists and watches, writes and
 * deletes. */
#include "serve/wire/kube_query.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/num.h"
#include "base/vec.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "rest/rest.h"

#define MANAGER_BYTES_MAX 128u
#define TEXT_BYTES_MAX (64u << 10)

void dv_query_parse(dv_str query, struct dv_arena *arena, struct dv_query *parsed)
{
    static const struct {
        dv_str name;
        size_t offset;
    } texts[] = {
        {DV_STR_INIT("labelSelector"),        offsetof(struct dv_query, label_selector)  },
        {DV_STR_INIT("fieldSelector"),        offsetof(struct dv_query, field_selector)  },
        {DV_STR_INIT("resourceVersion"),      offsetof(struct dv_query, resource_version)},
        {DV_STR_INIT("resourceVersionMatch"), offsetof(struct dv_query, match)           },
        {DV_STR_INIT("limit"),                offsetof(struct dv_query, limit)           },
        {DV_STR_INIT("continue"),             offsetof(struct dv_query, continue_token)  },
        {DV_STR_INIT("timeoutSeconds"),       offsetof(struct dv_query, timeout)         },
        {DV_STR_INIT("timeout"),              offsetof(struct dv_query, request_timeout) },
        {DV_STR_INIT("watch"),                offsetof(struct dv_query, watch)           },
        {DV_STR_INIT("allowWatchBookmarks"),  offsetof(struct dv_query, allow_bookmarks) },
        {DV_STR_INIT("sendInitialEvents"),    offsetof(struct dv_query, send_initial)    },
        {DV_STR_INIT("fieldManager"),         offsetof(struct dv_query, field_manager)   },
        {DV_STR_INIT("fieldValidation"),      offsetof(struct dv_query, field_validation)},
        {DV_STR_INIT("force"),                offsetof(struct dv_query, force)           },
        {DV_STR_INIT("gracePeriodSeconds"),   offsetof(struct dv_query, grace_period)    },
        {DV_STR_INIT("propagationPolicy"),    offsetof(struct dv_query, propagation)     },
        {DV_STR_INIT("orphanDependents"),     offsetof(struct dv_query, orphan)          },
        {DV_STR_INIT("pretty"),               offsetof(struct dv_query, pretty)          },
        {DV_STR_INIT("includeObject"),        offsetof(struct dv_query, include_object)  },
        {DV_STR_INIT("export"),               offsetof(struct dv_query, export)          },
    };
    DV_VEC(dv_str) dry_run = {0};
    dv_str rest = query;
    dv_str name, value;

    *parsed = (struct dv_query){0};
    while (dv_rest_query_next(&rest, arena, &name, &value)) {
        if (!value.p)
            value = DV_STR("");
        if (dv_str_eq(name, DV_STR("dryRun")))
            *dv_vec_add_in(&dry_run, arena) = value;
        for (size_t i = 0; i < DV_COUNT(texts); i++) {
            dv_str *text = (dv_str *)(void *)((char *)parsed + texts[i].offset);

            if (!text->p && dv_str_eq(name, texts[i].name)) /* the first one counts */
                *text = value;
        }
    }
    parsed->dry_run = dry_run.v;
    parsed->n_dry_run = dry_run.n;
}

bool dv_query_is_true(dv_str value)
{
    return value.p && !dv_str_eq(value, DV_STR("0")) && !dv_str_eq_nocase(value, DV_STR("false"));
}

/* ---- failures ---- */

static void add(struct dv_problems *problems, enum dv_problem_type type, const char *field,
                dv_str detail)
{
    struct dv_problem problem = {type, dv_str_from_c(field), detail};

    *dv_vec_add_in(problems, problems->arena) = problem;
}

/* Makes the failure `KIND.meta.k8s.io "" is invalid: ...`; true when there are no problems. */
static bool check(const char *kind, const struct dv_problems *problems, struct dv_arena *arena,
                  struct dv_api_status **failure)
{
    const struct dv_status_about about = {.what = dv_str_from_c(kind),
                                          .group = DV_STR("meta.k8s.io")};

    if (problems->n > 0)
        *failure = dv_status_invalid(&about, problems, arena);
    return problems->n == 0;
}

bool dv_query_parse_i64(dv_str text, struct dv_arena *arena, int64_t *value,
                        struct dv_api_status **failure)
{
    dv_str digits = text;
    bool is_number;

    if (digits.n > 0 && digits.p[0] == '+')
        digits = dv_str_slice(digits, 1, digits.n);
    if (dv_str_to_i64(digits, value))
        return true;
    is_number = digits.n > 0;
    for (size_t i = digits.n && digits.p[0] == '-' ? 1 : 0; i < digits.n; i++)
        is_number = is_number && digits.p[i] >= '0' && digits.p[i] <= '9';
    *failure = dv_status_bad_request(arena, "strconv.ParseInt: parsing \"%.*s\": %s", DV_FMT(text),
                                     is_number ? "value out of range" : "invalid syntax");
    return false;
}

/* Like dv_query_parse_i64, of an option that may be absent or empty: 0. */
static bool parse_i64(dv_str text, struct dv_arena *arena, int64_t *value,
                      struct dv_api_status **failure)
{
    *value = 0;
    return !text.n || dv_query_parse_i64(text, arena, value, failure);
}

bool dv_query_check_timeout(const struct dv_query *query, struct dv_arena *arena,
                            struct dv_api_status **failure)
{
    struct dv_err err;
    int64_t ns;

    if (!query->request_timeout.n || dv_duration_parse(query->request_timeout, &ns, &err))
        return true;
    *failure = dv_status_bad_request(arena, "invalid timeout specified in the request URL - %s",
                                     dv_err_text(&err));
    return false;
}

/* ---- lists and watches ---- */

static void check_watch(const struct dv_query *query, bool is_older_unwanted,
                        struct dv_problems *problems)
{
    static const char field[] = "resourceVersionMatch";

    if (query->send_initial.p && !is_older_unwanted)
        add(problems, DV_PROBLEM_FORBIDDEN, field,
            DV_STR("Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                   "NotOlderThan"));
    if (!query->match.n)
        return;
    if (!query->send_initial.p)
        add(problems, DV_PROBLEM_FORBIDDEN, field,
            DV_STR("Forbidden: resourceVersionMatch is forbidden for watch unless "
                   "sendInitialEvents is provided"));
    if (!is_older_unwanted)
        add(problems, DV_PROBLEM_NOT_SUPPORTED, field,
            dv_str_printf(problems->arena,
                          "Unsupported value: \"%.*s\": supported values: \"NotOlderThan\"",
                          DV_FMT(query->match)));
    if (query->continue_token.n)
        add(problems, DV_PROBLEM_FORBIDDEN, field,
            DV_STR("Forbidden: resourceVersionMatch is forbidden when continue is provided"));
}

static void check_list(const struct dv_query *query, bool is_older_unwanted, bool is_exact,
                       struct dv_problems *problems)
{
    static const char field[] = "resourceVersionMatch";

    if (query->match.n) {
        if (!query->resource_version.n)
            add(problems, DV_PROBLEM_FORBIDDEN, field,
                DV_STR("Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                       "provided"));
        if (query->continue_token.n)
            add(problems, DV_PROBLEM_FORBIDDEN, field,
                DV_STR("Forbidden: resourceVersionMatch is forbidden when continue is provided"));
        if (!is_older_unwanted && !is_exact)
            add(problems, DV_PROBLEM_NOT_SUPPORTED, field,
                dv_str_printf(problems->arena,
                              "Unsupported value: \"%.*s\": supported values: \"Exact\", "
                              "\"NotOlderThan\", \"\"",
                              DV_FMT(query->match)));
        if (is_exact && dv_str_eq(query->resource_version, DV_STR("0")))
            add(problems, DV_PROBLEM_FORBIDDEN, field,
                DV_STR("Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                       "resourceVersion \"0\""));
    }
    if (query->send_initial.p)
        add(problems, DV_PROBLEM_FORBIDDEN, "sendInitialEvents",
            DV_STR("Forbidden: sendInitialEvents is forbidden for list"));
}

bool dv_query_list_options(const struct dv_query *query, bool is_watch, struct dv_arena *arena,
                           struct dv_list_options *options, struct dv_api_status **failure)
{
    struct dv_problems problems = {.arena = arena};
    bool is_exact = dv_str_eq(query->match, DV_STR("Exact"));
    bool is_older_unwanted = dv_str_eq(query->match, DV_STR("NotOlderThan"));
    int64_t limit, timeout_s;

    if (!parse_i64(query->limit, arena, &limit, failure) ||
        !parse_i64(query->timeout, arena, &timeout_s, failure))
        return false;
    if (is_watch)
        check_watch(query, is_older_unwanted, &problems);
    else
        check_list(query, is_older_unwanted, is_exact, &problems);
    if (!check("ListOptions", &problems, arena, failure))
        return false;
    *options = (struct dv_list_options){
        .is_watch = is_watch,
        .match = is_exact            ? DV_MATCH_EXACT
                 : is_older_unwanted ? DV_MATCH_NOT_OLDER
                                     : DV_MATCH_NONE,
        .limit = limit > 0 ? (uint64_t)limit : 0,
        .timeout_s = timeout_s > 0 ? (uint64_t)timeout_s : 0,
        .allows_bookmarks = dv_query_is_true(query->allow_bookmarks),
        .has_send_initial = query->send_initial.p != NULL,
        .sends_initial = dv_query_is_true(query->send_initial),
    };
    return true;
}

/* ---- writes ---- */

static void check_manager(dv_str manager, struct dv_problems *problems)
{
    struct dv_buf buf;

    if (manager.n > MANAGER_BYTES_MAX)
        add(problems, DV_PROBLEM_TOO_LONG, "fieldManager",
            DV_STR("Too long: may not be more than 128 bytes"));
    for (size_t i = 0; i < manager.n; i++) {
        if ((unsigned char)manager.p[i] >= ' ' && manager.p[i] != 0x7f)
            continue;
        dv_buf_init(&buf, TEXT_BYTES_MAX);
        dv_buf_add_json(&buf, manager);
        add(problems, DV_PROBLEM_INVALID, "fieldManager",
            dv_str_printf(problems->arena,
                          "Invalid value: %s: should only contain printable characters",
                          dv_buf_c(&buf)));
        dv_buf_fini(&buf);
        return;
    }
}

static enum dv_field_validation check_validation(dv_str text, struct dv_problems *problems)
{
    if (!text.n || dv_str_eq(text, DV_STR("Warn")))
        return DV_VALIDATE_WARN;
    if (dv_str_eq(text, DV_STR("Strict")))
        return DV_VALIDATE_STRICT;
    if (!dv_str_eq(text, DV_STR("Ignore")))
        add(problems, DV_PROBLEM_NOT_SUPPORTED, "fieldValidation",
            dv_str_printf(problems->arena,
                          "Unsupported value: \"%.*s\": supported values: \"\", \"Ignore\", "
                          "\"Strict\", \"Warn\"",
                          DV_FMT(text)));
    return DV_VALIDATE_IGNORE;
}

static void check_force(const struct dv_query *query, bool is_apply, struct dv_problems *problems)
{
    if (is_apply && !query->field_manager.n)
        add(problems, DV_PROBLEM_REQUIRED, "fieldManager",
            DV_STR("Required value: is required for apply patch"));
    if (!is_apply && query->force.p)
        add(problems, DV_PROBLEM_FORBIDDEN, "force",
            DV_STR("Forbidden: may not be specified for non-apply patch"));
}

/* Returns the manager "kubectl" for the agent "kubectl/v1.36 (linux)". A header may have any bytes,
 * and a manager is stored: only whole characters without controls are taken, as many as fit. */
static dv_str manager_of_agent(dv_str agent, struct dv_arena *arena)
{
    dv_str rest = dv_str_slice(agent, 0, dv_str_find_char(agent, '/'));
    struct dv_buf buf;
    dv_str name;

    dv_buf_init(&buf, MANAGER_BYTES_MAX);
    while (rest.n > 0 && !buf.is_over) {
        size_t n = dv_str_utf8_char(rest);
        unsigned char first = (unsigned char)rest.p[0];
        bool is_control = first < ' ' || first == 0x7f ||
                          (n == 2 && first == 0xc2 && (unsigned char)rest.p[1] < 0xa0);

        if (n == 0)
            dv_buf_add(&buf, DV_STR("\xef\xbf\xbd"));
        else if (!is_control)
            dv_buf_add(&buf, dv_str_slice(rest, 0, n));
        rest = dv_str_slice(rest, n > 0 ? n : 1, rest.n);
    }
    name = buf.n > 0 ? dv_str_copy(dv_buf_str(&buf), arena) : DV_STR("unknown");
    dv_buf_fini(&buf);
    return name;
}

bool dv_query_write_options(const struct dv_query *query, const char *kind, bool is_apply,
                            dv_str user_agent, struct dv_arena *arena,
                            struct dv_write_options *options, struct dv_api_status **failure)
{
    struct dv_problems problems = {.arena = arena};
    enum dv_field_validation validation;

    if (dv_str_eq(dv_str_from_c(kind), DV_STR("PatchOptions")))
        check_force(query, is_apply, &problems);
    check_manager(query->field_manager, &problems);
    dv_validate_dry_run(query->dry_run, query->n_dry_run, &problems);
    validation = check_validation(query->field_validation, &problems);
    if (!check(kind, &problems, arena, failure))
        return false;
    *options = (struct dv_write_options){
        .is_dry_run = query->n_dry_run > 0,
        .is_forced = dv_query_is_true(query->force),
        .validation = validation,
        .field_manager =
            query->field_manager.n ? query->field_manager : manager_of_agent(user_agent, arena),
    };
    return true;
}

/* ---- deletes ---- */

bool dv_query_delete_options(const struct dv_query *query, struct dv_arena *arena,
                             struct dv_api_delete_options *options, struct dv_api_status **failure)
{
    int64_t grace_s = 0;

    *options = (struct dv_api_delete_options){0};
    if (query->grace_period.p) {
        int64_t *kept = DV_NEW(arena, int64_t);

        if (!parse_i64(query->grace_period, arena, &grace_s, failure))
            return false;
        *kept = grace_s;
        options->grace_period_seconds = kept;
    }
    if (query->orphan.p) {
        bool *orphan = DV_NEW(arena, bool);

        *orphan = dv_query_is_true(query->orphan);
        options->orphan_dependents = orphan;
    }
    options->propagation_policy = query->propagation;
    options->dry_run = DV_NEW_ARRAY(arena, dv_str, query->n_dry_run);
    options->n_dry_run = query->n_dry_run;
    for (size_t i = 0; i < query->n_dry_run; i++)
        options->dry_run[i] = query->dry_run[i];
    return true;
}
