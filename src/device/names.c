#include "device/device.h"

/* What a quota for the resource has before its name: both together must be a qualified name. */
#define QUOTA_PREFIX "requests."
#define PREFIX_BYTES_MAX (253u - (sizeof(QUOTA_PREFIX) - 1))
#define NAME_BYTES_MAX 63u

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alphanumeric(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* Labels joined by dots; a label has no length limit of its own here. */
static bool is_prefix(dv_str s)
{
    dv_str label;

    if (s.n == 0 || s.n > PREFIX_BYTES_MAX)
        return false;
    while (dv_str_split(&s, '.', &label)) {
        if (label.n == 0 || !is_lower_or_digit(label.p[0]) ||
            !is_lower_or_digit(label.p[label.n - 1]))
            return false;
        for (size_t i = 0; i < label.n; i++)
            if (!is_lower_or_digit(label.p[i]) && label.p[i] != '-')
                return false;
    }
    return true;
}

static bool is_name(dv_str s)
{
    if (s.n == 0 || s.n > NAME_BYTES_MAX || !is_alphanumeric(s.p[0]) ||
        !is_alphanumeric(s.p[s.n - 1]))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_alphanumeric(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
            return false;
    return true;
}

bool dv_device_name_check(dv_str resource, struct dv_err *err)
{
    size_t slash = dv_str_find_char(resource, '/');
    bool is_native = dv_str_find(resource, DV_STR("kubernetes.io/")) < resource.n;

    if (slash == resource.n || is_native || dv_str_starts_with(resource, DV_STR(QUOTA_PREFIX)) ||
        !is_prefix(dv_str_slice(resource, 0, slash)) ||
        !is_name(dv_str_slice(resource, slash + 1, resource.n)))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the ResourceName \"%.*s\" is invalid",
                       DV_FMT(resource));
    return true;
}
