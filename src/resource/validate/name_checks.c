/* name_checks.c - the formats of names, and what the reference says about those that do not fit. */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/name.h"
#include "resource/validate/checks.h"

#define LABEL_BYTES_MAX 63u
#define SUBDOMAIN_BYTES_MAX 253u
#define IDENTIFIER_BYTES_MAX 32u
#define DRIVER_BYTES_MAX 63u
#define POOL_BYTES_MAX 253u
#define REASON_BYTES_MAX 1024u

#define LABEL_TEXT                                                                                 \
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "   \
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "     \
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
#define SUBDOMAIN_TEXT                                                                             \
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "   \
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "  \
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define NAME_TEXT                                                                                  \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "         \
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define VALUE_TEXT                                                                                 \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "             \
    "'my_value',  or '12345', regex used for validation is "                                       \
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define IDENTIFIER_TEXT                                                                            \
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "   \
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for " \
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"
#define CONFIG_KEY_TEXT                                                                            \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "           \
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
#define REASON_TEXT                                                                                \
    "a condition reason must start with alphabetic character, optionally followed by a string of " \
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "  \
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex " \
    "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"

/* -- Questions ------------------------------------------------------------------------------ */

static bool is_identifier(dv_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!dv_is_letter(s.p[i]) && s.p[i] != '_' && (i == 0 || !dv_is_alphanumeric(s.p[i])))
            return false;
    return s.n > 0;
}

bool dv_is_driver_name(dv_str name)
{
    return name.n <= DRIVER_BYTES_MAX && dv_has_subdomain_form(name, true);
}

bool dv_is_pool_name(dv_str name)
{
    dv_str part;

    if (name.n == 0 || name.n > POOL_BYTES_MAX)
        return false;
    while (dv_str_split(&name, '/', &part))
        if (!dv_is_dns_subdomain(part))
            return false;
    return true;
}

bool dv_is_native_resource_name(dv_str name)
{
    return dv_str_find_char(name, '/') == name.n ||
           dv_str_find(name, DV_STR("kubernetes.io/")) < name.n;
}

bool dv_is_extended_resource_name(dv_str name)
{
    static const dv_str quota = DV_STR_INIT("requests.");
    size_t slash = dv_str_find_char(name, '/');

    /* A quota writes "requests." before it, so the domain must leave room for that. */
    return !dv_is_native_resource_name(name) && !dv_str_starts_with(name, quota) &&
           slash + quota.n <= SUBDOMAIN_BYTES_MAX && dv_is_label_name(name);
}

/* -- Checks --------------------------------------------------------------------------------- */

static void add_invalid(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, dv_str value, const char *before, const char *text)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value), "%s%s", before,
                   text);
}

static void add_too_long(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str value, size_t max, const char *unit)
{
    dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                   "must be no more than %zu %s", max, unit);
}

void dv_check_dns_label(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, dv_str value)
{
    if (value.n > LABEL_BYTES_MAX)
        add_too_long(problems, path, name, value, LABEL_BYTES_MAX, "characters");
    if (dv_has_label_form(value, false))
        return;
    if (dv_has_subdomain_form(value, false))
        add_invalid(problems, path, name, value, "", "must not contain dots");
    else
        add_invalid(problems, path, name, value, "", LABEL_TEXT);
}

static void check_subdomain(struct dv_problems *problems, const struct dv_field_path *path,
                            const char *name, dv_str value, const char *unit)
{
    if (value.n > SUBDOMAIN_BYTES_MAX)
        add_too_long(problems, path, name, value, SUBDOMAIN_BYTES_MAX, unit);
    if (!dv_has_subdomain_form(value, false))
        add_invalid(problems, path, name, value, "", SUBDOMAIN_TEXT);
}

/* A name that can be one of a host in all resolvers: a label that begins with a letter. */
void dv_check_dns_1035_label(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, dv_str value)
{
    bool is_good =
        value.n > 0 && value.p[0] >= 'a' && value.p[0] <= 'z' && value.p[value.n - 1] != '-';

    if (value.n > LABEL_BYTES_MAX)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "must be no more than %u characters", LABEL_BYTES_MAX);
    for (size_t i = 0; i < value.n; i++)
        is_good = is_good && ((value.p[i] >= 'a' && value.p[i] <= 'z') || dv_is_digit(value.p[i]) ||
                              value.p[i] == '-');
    if (!is_good)
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "a DNS-1035 label must consist of lower case alphanumeric characters or "
                       "'-', start with an alphabetic character, and end with an alphanumeric "
                       "character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                       "'[a-z]([-a-z0-9]*[a-z0-9])?')");
}

void dv_check_dns_subdomain(struct dv_problems *problems, const struct dv_field_path *path,
                            const char *name, dv_str value)
{
    check_subdomain(problems, path, name, value, "characters");
}

void dv_check_dns_subdomain_bytes(struct dv_problems *problems, const struct dv_field_path *path,
                                  const char *name, dv_str value)
{
    check_subdomain(problems, path, name, value, "bytes");
}

/* Checks `value`, and calls it `shown` in the problem. */
static void check_label_name(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, dv_str value, dv_str shown)
{
    size_t slash = dv_str_find_char(value, '/');
    dv_str prefix = dv_str_slice(value, 0, slash);
    dv_str part = slash < value.n ? dv_str_slice(value, slash + 1, value.n) : value;

    if (dv_str_find_char(part, '/') < part.n) {
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(shown),
                       "a valid label key %s with an optional DNS subdomain prefix and '/' (e.g. "
                       "'example.com/MyName')",
                       NAME_TEXT);
        return;
    }
    if (slash < value.n && prefix.n == 0)
        add_invalid(problems, path, name, shown, "", "prefix part must be non-empty");
    if (slash < value.n && prefix.n > SUBDOMAIN_BYTES_MAX)
        add_invalid(problems, path, name, shown, "prefix part ", "must be no more than 253 bytes");
    if (slash < value.n && prefix.n > 0 && !dv_has_subdomain_form(prefix, false))
        add_invalid(problems, path, name, shown, "prefix part ", SUBDOMAIN_TEXT);
    if (part.n == 0)
        add_invalid(problems, path, name, shown, "", "name part must be non-empty");
    if (part.n > LABEL_BYTES_MAX)
        add_invalid(problems, path, name, shown, "name part ", "must be no more than 63 bytes");
    if (!dv_has_name_form(part))
        add_invalid(problems, path, name, shown, "name part ", NAME_TEXT);
}

void dv_check_label_name(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str value)
{
    check_label_name(problems, path, name, value, value);
}

void dv_check_annotation_name(struct dv_problems *problems, const struct dv_field_path *path,
                              const char *name, dv_str value)
{
    char *lower;

    if (dv_is_label_name(value))
        return;
    lower = dv_arena_alloc_raw(problems->arena, value.n, 1);
    for (size_t i = 0; i < value.n; i++)
        lower[i] = dv_to_lower(value.p[i]);
    check_label_name(problems, path, name, (dv_str){lower, value.n}, value);
}

void dv_check_label_value(struct dv_problems *problems, const struct dv_field_path *path,
                          const char *name, dv_str value)
{
    if (value.n > LABEL_BYTES_MAX)
        add_too_long(problems, path, name, value, LABEL_BYTES_MAX, "bytes");
    if (value.n > 0 && !dv_has_name_form(value))
        add_invalid(problems, path, name, value, "", VALUE_TEXT);
}

void dv_check_config_key(struct dv_problems *problems, const struct dv_field_path *path,
                         const char *name, dv_str value)
{
    bool is_good = value.n > 0;

    if (value.n > SUBDOMAIN_BYTES_MAX)
        add_too_long(problems, path, name, value, SUBDOMAIN_BYTES_MAX, "characters");
    for (size_t i = 0; i < value.n; i++)
        if (!dv_is_alphanumeric(value.p[i]) && value.p[i] != '-' && value.p[i] != '_' &&
            value.p[i] != '.')
            is_good = false;
    if (!is_good)
        add_invalid(problems, path, name, value, "", CONFIG_KEY_TEXT);
    if (dv_str_eq(value, DV_STR(".")))
        add_invalid(problems, path, name, value, "", "must not be '.'");
    else if (dv_str_eq(value, DV_STR("..")))
        add_invalid(problems, path, name, value, "", "must not be '..'");
    else if (dv_str_starts_with(value, DV_STR("..")))
        add_invalid(problems, path, name, value, "", "must not start with '..'");
}

void dv_check_path_segment(struct dv_problems *problems, const struct dv_field_path *path,
                           const char *name, dv_str value)
{
    if (dv_str_eq(value, DV_STR(".")) || dv_str_eq(value, DV_STR(".."))) {
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                       "may not be '%.*s'", DV_FMT(value));
        return;
    }
    for (const char *c = "/%"; *c; c++)
        if (dv_str_find_char(value, *c) < value.n)
            dv_problem_add(problems, DV_PROBLEM_INVALID, path, name, dv_bad_str(value),
                           "may not contain '%c'", *c);
}

void dv_check_driver_name(struct dv_problems *problems, const struct dv_field_path *path,
                          const char *name, dv_str value)
{
    if (value.n == 0) {
        dv_required(problems, path, name);
        return;
    }
    if (value.n > DRIVER_BYTES_MAX)
        dv_too_long(problems, path, name, DRIVER_BYTES_MAX);
    if (value.n > SUBDOMAIN_BYTES_MAX)
        add_too_long(problems, path, name, value, SUBDOMAIN_BYTES_MAX, "characters");
    if (!dv_has_subdomain_form(value, true))
        add_invalid(problems, path, name, value, "", SUBDOMAIN_TEXT);
}

void dv_check_pool_name(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, dv_str value)
{
    dv_str part;

    if (value.n == 0) {
        dv_required(problems, path, name);
        return;
    }
    if (value.n > POOL_BYTES_MAX)
        dv_too_long(problems, path, name, POOL_BYTES_MAX);
    while (dv_str_split(&value, '/', &part))
        dv_check_dns_subdomain(problems, path, name, part);
}

static void check_identifier(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, dv_str value)
{
    if (value.n > IDENTIFIER_BYTES_MAX)
        dv_too_long(problems, path, name, IDENTIFIER_BYTES_MAX);
    if (!is_identifier(value))
        add_invalid(problems, path, name, value, "", IDENTIFIER_TEXT);
}

void dv_check_qualified_name(struct dv_problems *problems, const struct dv_field_path *path,
                             const char *name, dv_str value)
{
    size_t slash = dv_str_find_char(value, '/');
    dv_str domain = dv_str_slice(value, 0, slash);
    dv_str id = dv_str_slice(value, slash + 1, value.n);

    if (slash == value.n) {
        check_identifier(problems, path, name, value);
        return;
    }
    if (dv_str_find_char(id, '/') < id.n)
        return; /* the reference lets more than one slash pass, so objects with it exist */
    if (domain.n == 0)
        add_invalid(problems, path, name, DV_STR(""), "", "the domain must not be empty");
    else
        dv_check_driver_name(problems, path, name, domain);
    if (id.n == 0)
        add_invalid(problems, path, name, DV_STR(""), "", "the name must not be empty");
    else
        check_identifier(problems, path, name, id);
}

void dv_check_full_name(struct dv_problems *problems, const struct dv_field_path *path,
                        const char *name, dv_str value)
{
    dv_check_qualified_name(problems, path, name, value);
    if (dv_str_find_char(value, '/') == value.n)
        add_invalid(problems, path, name, value, "",
                    "a fully qualified name must be a domain and a name separated by a slash");
}

void dv_check_uuid(struct dv_problems *problems, const struct dv_field_path *path, const char *name,
                   dv_str value)
{
    bool is_good = value.n == 36;

    for (size_t i = 0; is_good && i < value.n; i++) {
        char c = value.p[i];

        if (i == 8 || i == 13 || i == 18 || i == 23)
            is_good = c == '-';
        else
            is_good = dv_is_hex(c) && !dv_is_upper(c);
    }
    if (!is_good)
        add_invalid(problems, path, name, value, "",
                    "must be a lowercase UUID in 8-4-4-4-12 format");
}

void dv_check_condition_reason(struct dv_problems *problems, const struct dv_field_path *path,
                               const char *name, dv_str value)
{
    bool is_good = value.n > 0 && dv_is_letter(value.p[0]);

    for (size_t i = 1; is_good && i < value.n; i++) {
        char c = value.p[i];

        is_good = dv_is_alphanumeric(c) || c == '_' || ((c == ',' || c == ':') && i + 1 < value.n);
    }
    if (!is_good)
        add_invalid(problems, path, name, value, "", REASON_TEXT);
    if (value.n > REASON_BYTES_MAX)
        dv_too_long(problems, path, name, REASON_BYTES_MAX);
}

void dv_check_required(struct dv_problems *problems, const struct dv_field_path *path,
                       const char *name, dv_str value, dv_check_text *check)
{
    if (value.n == 0)
        dv_required(problems, path, name);
    else
        check(problems, path, name, value);
}

void dv_check_one_of(struct dv_problems *problems, const struct dv_field_path *path,
                     const char *name, dv_str value, const dv_str *supported, size_t n_supported)
{
    for (size_t i = 0; i < n_supported; i++)
        if (dv_str_eq(value, supported[i]))
            return;
    dv_not_supported(problems, path, name, value, supported, n_supported);
}
