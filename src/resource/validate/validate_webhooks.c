/* validate_webhooks.c - configurations of admission webhooks: who is called, for which writes, and
 * how. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/name.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"
#include "resource/validate/validate_kinds.h"
#include "resource/webhooks.h"

#define NAME_SEGMENTS_MIN 3u
#define TIMEOUT_S_MAX 30
#define PORT_MAX 65535
#define URL_FORM "; desired format: https://host[/path]"

/* Versions of the review that there are. */
static const dv_str reviews[] = {DV_STR_INIT("v1"), DV_STR_INIT("v1beta1")};

struct checker {
    struct dv_problems *problems;
    struct dv_arena *arena;
    const struct dv_cel_policy *cel;
};

static void add(struct checker *c, const struct dv_field_path *path, const char *name, dv_str value,
                const char *text)
{
    dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value), "%s", text);
}

static void check_name(struct checker *c, const struct dv_field_path *path, dv_str name)
{
    size_t n_segments = 1;

    for (size_t i = 0; i < name.n; i++)
        n_segments += name.p[i] == '.';
    if (name.n == 0)
        dv_required(c->problems, path, "name");
    else if (!dv_is_dns_subdomain(name))
        dv_check_dns_subdomain(c->problems, path, "name", name);
    else if (n_segments < NAME_SEGMENTS_MIN)
        add(c, path, "name", name,
            "should be a domain with at least three segments separated by dots");
}

/* ---- whom to call ---- */

/* The parts of "https://user@host/path?query#fragment", each without its mark. */
struct url {
    dv_str scheme;
    dv_str user;
    dv_str host;
    dv_str query;
    dv_str fragment;
    bool has_user;
};

/* Takes what is behind `mark` off the text. */
static dv_str take_end(dv_str *text, char mark)
{
    size_t at = dv_str_find_char(*text, mark);
    dv_str end = at < text->n ? dv_str_slice(*text, at + 1, text->n) : DV_STR_NONE;

    *text = dv_str_slice(*text, 0, at);
    return end;
}

static struct url split_url(dv_str text)
{
    struct url url = {.fragment = take_end(&text, '#')};
    size_t colon = dv_str_find(text, DV_STR("://"));

    url.query = take_end(&text, '?');
    if (colon >= text.n)
        return url;
    url.scheme = dv_str_slice(text, 0, colon);
    text = dv_str_slice(text, colon + 3, text.n);
    url.host = dv_str_slice(text, 0, dv_str_find_char(text, '/'));
    if (dv_str_find_char(url.host, '@') < url.host.n) {
        url.has_user = true;
        url.user = url.host;
        url.host = take_end(&url.user, '@');
    }
    return url;
}

static bool is_printable(dv_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] >= 0x7f)
            return false;
    return true;
}

static void check_url(struct checker *c, const struct dv_field_path *path, dv_str text)
{
    struct url url = split_url(text);

    if (!is_printable(text)) {
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, path, "url", dv_bad_none(),
                       "url must be a valid URL: it has characters that must be escaped%s",
                       URL_FORM);
        return;
    }
    if (!dv_str_eq_nocase(url.scheme, DV_STR("https")))
        add(c, path, "url", url.scheme, "'https' is the only allowed URL scheme" URL_FORM);
    if (url.host.n == 0)
        add(c, path, "url", url.host, "host must be provided" URL_FORM);
    if (url.has_user)
        add(c, path, "url", url.user, "user information is not permitted in the URL");
    if (url.fragment.n > 0)
        add(c, path, "url", url.fragment, "fragments are not permitted in the URL");
    if (url.query.n > 0)
        add(c, path, "url", url.query, "query parameters are not permitted in the URL");
}

/* Checks a path, each of whose segments is a name of hosts. */
static void check_path(struct checker *c, const struct dv_field_path *path, dv_str text)
{
    dv_str rest = text;
    dv_str segment;
    size_t i = 0;

    if (text.n == 0 || dv_str_eq(text, DV_STR("/")))
        return;
    if (text.p[0] != '/')
        add(c, path, "path", text, "must start with a '/'");
    rest = dv_str_slice(rest, 1, rest.n);
    if (dv_str_ends_with(rest, DV_STR("/")) && rest.n > 1)
        rest.n--;
    for (; dv_str_split(&rest, '/', &segment) && !dv_problems_are_full(c->problems); i++) {
        if (segment.n == 0)
            dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "path", dv_bad_str(text),
                           "segment[%zu] may not be empty", i);
        else if (!dv_is_dns_subdomain(segment))
            dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "path", dv_bad_str(text),
                           "segment[%zu]: a lowercase RFC 1123 subdomain must consist of lower "
                           "case alphanumeric characters, '-' or '.', and must start and end with "
                           "an alphanumeric character",
                           i);
    }
}

static void check_client(struct checker *c, const struct dv_field_path *hook,
                         const struct dv_api_webhook_client_config *config)
{
    const struct dv_api_service_reference *service = config->service;
    struct dv_field_path path = dv_path_name(hook, "clientConfig");
    struct dv_field_path at = dv_path_name(&path, "service");

    if ((config->url.p != NULL) == (service != NULL)) {
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, hook, "clientConfig", dv_bad_none(),
                       "exactly one of url or service is required");
        return;
    }
    if (!service) {
        check_url(c, &path, config->url);
        return;
    }
    if (service->name.n == 0)
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, &at, "name", dv_bad_none(),
                       "service name is required");
    if (service->namespace.n == 0)
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, &at, "namespace", dv_bad_none(),
                       "service namespace is required");
    if (service->port && (*service->port < 1 || *service->port > PORT_MAX))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, &at, "port", dv_bad_i64(*service->port),
                       "port is not valid: must be between 1 and 65535, inclusive");
    check_path(c, &at, service->path);
}

/* ---- how ---- */

static void check_reviews(struct checker *c, const struct dv_field_path *hook,
                          const dv_str *versions, size_t n)
{
    struct dv_field_path list = dv_path_name(hook, "admissionReviewVersions");
    bool is_known = false;

    if (n == 0) {
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, hook, "admissionReviewVersions",
                       dv_bad_none(), "must specify one of v1, v1beta1");
        return;
    }
    for (size_t i = 0; i < n && !dv_problems_are_full(c->problems); i++) {
        struct dv_field_path item = dv_path_index(&list, i);
        size_t k = 0;

        while (!dv_str_eq(versions[k], versions[i]))
            k++;
        if (k < i)
            add(c, &item, NULL, versions[i], "duplicate version");
        else
            dv_check_dns_1035_label(c->problems, &item, NULL, versions[i]);
        for (size_t r = 0; r < DV_COUNT(reviews); r++)
            is_known |= dv_str_eq(versions[i], reviews[r]);
    }
    if (!is_known)
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, hook, "admissionReviewVersions",
                       dv_bad_strs(versions, n, c->problems->arena),
                       "must include at least one of v1, v1beta1");
}

static void check_effects(struct checker *c, const struct dv_field_path *path, dv_str effects)
{
    static const dv_str allowed[] = {DV_STR_INIT("None"), DV_STR_INIT("NoneOnDryRun")};

    if (!effects.p)
        dv_problem_add(c->problems, DV_PROBLEM_REQUIRED, path, "sideEffects", dv_bad_none(),
                       "must specify one of None, NoneOnDryRun");
    else
        dv_check_one_of(c->problems, path, "sideEffects", effects, allowed, DV_COUNT(allowed));
}

static void check_selectors(struct checker *c, const struct dv_field_path *path,
                            const struct dv_api_mutating_webhook *hook)
{
    struct dv_field_path namespaces = dv_path_name(path, "namespaceSelector");
    struct dv_field_path objects = dv_path_name(path, "objectSelector");

    if (hook->namespace_selector)
        dv_check_label_selector(c->problems, &namespaces, hook->namespace_selector, false);
    if (hook->object_selector)
        dv_check_label_selector(c->problems, &objects, hook->object_selector, false);
}

static void check_hook(struct checker *c, const struct dv_field_path *path,
                       const struct dv_api_mutating_webhook *hook)
{
    struct dv_field_path rules = dv_path_name(path, "rules");
    struct dv_field_path conditions = dv_path_name(path, "matchConditions");

    check_name(c, path, hook->name);
    for (size_t i = 0; i < hook->n_rules && !dv_problems_are_full(c->problems); i++) {
        struct dv_field_path item = dv_path_index(&rules, i);

        dv_check_rule_with_operations(c->problems, &item, &hook->rules[i]);
    }
    dv_check_failure_policy(c->problems, path, hook->failure_policy);
    dv_check_match_policy(c->problems, path, hook->match_policy);
    check_effects(c, path, hook->side_effects);
    if (hook->timeout_seconds &&
        (*hook->timeout_seconds < 1 || *hook->timeout_seconds > TIMEOUT_S_MAX))
        dv_problem_add(c->problems, DV_PROBLEM_INVALID, path, "timeoutSeconds",
                       dv_bad_i64(*hook->timeout_seconds),
                       "the timeout value must be between 1 and 30 seconds");
    check_selectors(c, path, hook);
    check_client(c, path, &hook->client_config);
    dv_check_match_conditions(c->problems, &conditions, c->cel, hook->match_conditions,
                              hook->n_match_conditions, c->arena);
    check_reviews(c, path, hook->admission_review_versions, hook->n_admission_review_versions);
}

/* ---- configurations ---- */

static struct checker begin(const struct dv_validation *what, struct dv_problems *problems)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, false};
    static const struct dv_cel_policy_options plain = {false, false};
    struct dv_arena *arena = dv_arena_new();

    dv_check_meta(problems, what->value, &rules);
    if (what->old)
        dv_check_kind_meta_update(problems, what->value, what->old);
    return (struct checker){problems, arena, dv_cel_policy_new(&plain, arena)};
}

static const struct dv_field_path list_path = {.kind = PATH_NAME, .name = "webhooks"};

void dv_validate_validating_webhooks(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_api_validating_webhook_configuration *config = what->value;
    struct checker checker = begin(what, problems);

    for (size_t i = 0; i < config->n_webhooks && !dv_problems_are_full(problems); i++) {
        struct dv_api_mutating_webhook hook = dv_webhook_of(&config->webhooks[i]);
        struct dv_field_path path = dv_path_index(&list_path, i);

        check_hook(&checker, &path, &hook);
    }
    dv_check_unique(problems, &list_path, "name", config->webhooks, config->n_webhooks,
                    sizeof(config->webhooks[0]));
    dv_arena_free(checker.arena);
}

void dv_validate_mutating_webhooks(struct dv_problems *problems, const struct dv_validation *what)
{
    static const dv_str policies[] = {DV_STR_INIT("IfNeeded"), DV_STR_INIT("Never")};
    const struct dv_api_mutating_webhook_configuration *config = what->value;
    struct checker checker = begin(what, problems);

    for (size_t i = 0; i < config->n_webhooks && !dv_problems_are_full(problems); i++) {
        struct dv_field_path path = dv_path_index(&list_path, i);

        check_hook(&checker, &path, &config->webhooks[i]);
        dv_check_one_of(problems, &path, "reinvocationPolicy",
                        config->webhooks[i].reinvocation_policy, policies, DV_COUNT(policies));
    }
    dv_check_unique(problems, &list_path, "name", config->webhooks, config->n_webhooks,
                    sizeof(config->webhooks[0]));
    dv_arena_free(checker.arena);
}
