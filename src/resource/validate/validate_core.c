/* validate_core.c - namespaces, accounts, secrets, config maps, leases. */
#include "resource/validate/validate_kinds.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/pod_security.h"
#include "resource/resource.h"
#include "resource/validate/checks.h"

/* The most bytes of an object's data: the reference's own limit, so that it fits its store. */
#define DATA_BYTES_MAX (1024u * 1024u)

#define ACCOUNT_ANNOTATION "kubernetes.io/service-account.name"
#define IMMUTABLE_TEXT "field is immutable when `immutable` is set"

static void check_meta(struct dv_problems *problems, const struct dv_api_object_meta *meta,
                       const struct dv_api_object_meta *old, const struct dv_meta_rules *rules)
{
    if (old)
        dv_check_kind_meta_update(problems, meta, old);
    else
        dv_check_meta(problems, meta, rules);
}

/* Labels that say what pods are held to: a word that is none must not look as if it had an effect.
 * What has not changed is left alone. */
static void check_security_labels(struct dv_problems *problems,
                                  const struct dv_api_object_meta *meta,
                                  const struct dv_api_object_meta *old)
{
    static const struct {
        dv_str name;
        bool is_version;
    } known[] = {
        {DV_STR_INIT("pod-security.kubernetes.io/audit"),           false},
        {DV_STR_INIT("pod-security.kubernetes.io/audit-version"),   true },
        {DV_STR_INIT("pod-security.kubernetes.io/enforce"),         false},
        {DV_STR_INIT("pod-security.kubernetes.io/enforce-version"), true },
        {DV_STR_INIT("pod-security.kubernetes.io/warn"),            false},
        {DV_STR_INIT("pod-security.kubernetes.io/warn-version"),    true },
    };
    struct dv_field_path path = dv_path_name(NULL, "metadata");
    struct dv_field_path labels = dv_path_name(&path, "labels");
    int64_t minor;

    for (size_t i = 0; i < DV_COUNT(known); i++) {
        const struct dv_str_entry *label =
            dv_entry_find(meta->labels, meta->n_labels, known[i].name);
        const struct dv_str_entry *before =
            old ? dv_entry_find(old->labels, old->n_labels, known[i].name) : NULL;
        struct dv_field_path at = dv_path_key(&labels, known[i].name);

        if (!label || (before && dv_str_eq(before->value, label->value)))
            continue;
        if (!known[i].is_version && !dv_pod_security_is_level(label->value))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &at, NULL, dv_bad_str(label->value),
                           "must be one of privileged, baseline, restricted");
        if (known[i].is_version && !dv_pod_security_version(label->value, &minor))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &at, NULL, dv_bad_str(label->value),
                           "must be \"latest\" or \"v1.x\"");
    }
}

void dv_validate_namespace(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_label, false};
    const struct dv_api_namespace *namespace = what->value;
    const struct dv_api_namespace *old = what->old;

    check_meta(problems, &namespace->metadata, old ? &old->metadata : NULL, &rules);
    check_security_labels(problems, &namespace->metadata, old ? &old->metadata : NULL);
}

void dv_validate_service_account(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    const struct dv_api_service_account *account = what->value;
    const struct dv_api_service_account *old = what->old;

    check_meta(problems, &account->metadata, old ? &old->metadata : NULL, &rules);
}

/* -- Data ----------------------------------------------------------------------------------- */

static size_t check_data(struct dv_problems *problems, const char *name,
                         const struct dv_str_entry *data, size_t n)
{
    struct dv_field_path path = dv_path_name(NULL, name);
    size_t n_bytes = 0;

    for (size_t i = 0; i < n; i++) {
        struct dv_field_path item = dv_path_key(&path, data[i].key);

        dv_check_config_key(problems, &item, NULL, data[i].key);
        n_bytes += data[i].value.n;
    }
    return n_bytes;
}

static bool is_same_data(const struct dv_str_entry *a, size_t n_a, const struct dv_str_entry *b,
                         size_t n_b)
{
    if (n_a != n_b)
        return false;
    for (size_t i = 0; i < n_a; i++)
        if (!dv_str_eq(a[i].key, b[i].key) || !dv_str_eq(a[i].value, b[i].value))
            return false;
    return true;
}

static void add_fixed(struct dv_problems *problems, const char *name)
{
    dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, NULL, name, dv_bad_none(), IMMUTABLE_TEXT);
}

static void check_fixed(struct dv_problems *problems, const bool *immutable)
{
    if (!immutable || !*immutable)
        add_fixed(problems, "immutable");
}

static void check_map_data(struct dv_problems *problems, const struct dv_api_config_map *map)
{
    struct dv_field_path data = dv_path_name(NULL, "data");
    size_t n_bytes = check_data(problems, "data", map->data, map->n_data);

    n_bytes += check_data(problems, "binaryData", map->binary_data, map->n_binary_data);
    for (size_t i = 0; i < map->n_data; i++) {
        struct dv_field_path item = dv_path_key(&data, map->data[i].key);

        if (dv_entry_find(map->binary_data, map->n_binary_data, map->data[i].key))
            dv_problem_add(problems, DV_PROBLEM_INVALID, &item, NULL, dv_bad_str(map->data[i].key),
                           "duplicate of key present in binaryData");
    }
    if (n_bytes > DATA_BYTES_MAX)
        dv_too_long(problems, NULL, "", DATA_BYTES_MAX);
}

void dv_validate_config_map(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    const struct dv_api_config_map *map = what->value;
    const struct dv_api_config_map *old = what->old;

    check_meta(problems, &map->metadata, old ? &old->metadata : NULL, &rules);
    if (old && old->immutable && *old->immutable) {
        check_fixed(problems, map->immutable);
        if (!is_same_data(map->data, map->n_data, old->data, old->n_data))
            add_fixed(problems, "data");
        if (!is_same_data(map->binary_data, map->n_binary_data, old->binary_data,
                          old->n_binary_data))
            add_fixed(problems, "binaryData");
    }
    if (old)
        dv_check_meta(problems, &map->metadata, &rules);
    check_map_data(problems, map);
}

/* What a secret of a type must have: one of the keys, or all of them. */
static const struct {
    dv_str type;
    const char *keys[2];
    bool is_any;
} secret_types[] = {
    {DV_STR_INIT("kubernetes.io/dockercfg"),        {".dockercfg"},           false},
    {DV_STR_INIT("kubernetes.io/dockerconfigjson"), {".dockerconfigjson"},    false},
    {DV_STR_INIT("kubernetes.io/basic-auth"),       {"username", "password"}, true },
    {DV_STR_INIT("kubernetes.io/ssh-auth"),         {"ssh-privatekey"},       false},
    {DV_STR_INIT("kubernetes.io/tls"),              {"tls.crt", "tls.key"},   false},
};

static void check_secret_keys(struct dv_problems *problems, const struct dv_api_secret *secret,
                              const char *const keys[2], bool is_any)
{
    struct dv_field_path data = dv_path_name(NULL, "data");
    bool is_there[2];

    for (size_t i = 0; i < 2; i++)
        is_there[i] =
            !keys[i] || dv_entry_find(secret->data, secret->n_data, dv_str_from_c(keys[i])) != NULL;
    if (is_any && (is_there[0] || is_there[1]))
        return;
    for (size_t i = 0; i < 2; i++) {
        struct dv_field_path key = dv_path_key(&data, dv_str_from_c(keys[i]));

        if (!is_there[i])
            dv_required(problems, &key, NULL);
    }
}

static void check_secret_type(struct dv_problems *problems, const struct dv_api_secret *secret)
{
    static const struct dv_field_path metadata = {.kind = PATH_NAME, .name = "metadata"};
    struct dv_field_path annotations = dv_path_name(&metadata, "annotations");
    struct dv_field_path account = dv_path_key(&annotations, DV_STR(ACCOUNT_ANNOTATION));
    const struct dv_str_entry *name = dv_entry_find(
        secret->metadata.annotations, secret->metadata.n_annotations, DV_STR(ACCOUNT_ANNOTATION));

    if (dv_str_eq(secret->type, DV_STR("kubernetes.io/service-account-token")) &&
        (!name || name->value.n == 0))
        dv_required(problems, &account, NULL);
    for (size_t i = 0; i < DV_COUNT(secret_types); i++)
        if (dv_str_eq(secret->type, secret_types[i].type))
            check_secret_keys(problems, secret, secret_types[i].keys, secret_types[i].is_any);
}

void dv_validate_secret(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    const struct dv_api_secret *secret = what->value;
    const struct dv_api_secret *old = what->old;

    check_meta(problems, &secret->metadata, old ? &old->metadata : NULL, &rules);
    if (old && !dv_str_eq(secret->type, old->type))
        dv_immutable(problems, NULL, "type", dv_bad_str(secret->type));
    if (old && old->immutable && *old->immutable) {
        check_fixed(problems, secret->immutable);
        if (!is_same_data(secret->data, secret->n_data, old->data, old->n_data))
            add_fixed(problems, "data");
    }
    if (check_data(problems, "data", secret->data, secret->n_data) > DATA_BYTES_MAX)
        dv_too_long(problems, NULL, "data", DATA_BYTES_MAX);
    check_secret_type(problems, secret);
}

/* -- Leases --------------------------------------------------------------------------------- */

void dv_validate_lease(struct dv_problems *problems, const struct dv_validation *what)
{
    static const struct dv_meta_rules rules = {dv_check_dns_subdomain, true};
    static const struct dv_field_path path = {.kind = PATH_NAME, .name = "spec"};
    const struct dv_api_lease *lease = what->value;
    const struct dv_api_lease *old = what->old;
    const int64_t *duration = lease->spec.lease_duration_seconds;
    const int64_t *transitions = lease->spec.lease_transitions;

    check_meta(problems, &lease->metadata, old ? &old->metadata : NULL, &rules);
    if (duration && *duration <= 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "leaseDurationSeconds",
                       dv_bad_i64(*duration), "must be greater than 0");
    if (transitions && *transitions < 0)
        dv_problem_add(problems, DV_PROBLEM_INVALID, &path, "leaseTransitions",
                       dv_bad_i64(*transitions), "must be greater than or equal to 0");
    if (lease->spec.preferred_holder.n > 0 && lease->spec.strategy.n == 0)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, &path, "preferredHolder", dv_bad_none(),
                       "may only be specified when `strategy` is defined");
}

void dv_validate_metadata(struct dv_problems *problems, const struct dv_validation *what)
{
    const struct dv_meta_rules rules = {dv_check_dns_subdomain, what->kind->is_namespaced};

    /* Metadata is the first member of every object. */
    check_meta(problems, what->value, what->old, &rules);
}
