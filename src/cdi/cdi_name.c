/* cdi_name.c - names of vendors, classes, devices and annotations.
 *
 * The specification wants a DNS subdomain for a vendor; its library has always taken capitals and
 * underscores too, and specs in the field use them. What it says of lengths is kept. */
#include "cdi/cdi_name.h"

#include <string.h>

#include "base/arena.h"
#include "base/ascii.h"
#include "base/err.h"
#include "cdi/cdi.h"

#define ANNOTATION_PREFIX DV_STR("cdi.k8s.io/")
/* Kubernetes' own for the two halves of an annotation's key. */
#define KEY_NAME_BYTES_MAX 63u
#define KEY_PREFIX_BYTES_MAX 253u

/* The characters that a name may have, beside letters and digits. */
struct rules {
    const char *what;
    const char *inside; /* not first, not last */
    size_t bytes_max;
    bool needs_letter; /* first */
};

static const struct rules vendor_rules = {"vendor", "_-.", DV_CDI_VENDOR_BYTES_MAX, true};
static const struct rules class_rules = {"class", "_-.", DV_CDI_CLASS_BYTES_MAX, true};
static const struct rules device_rules = {"device name", "_-.:", DV_CDI_DEVICE_BYTES_MAX, false};
static const struct rules key_rules = {"annotation name", "_-.", KEY_NAME_BYTES_MAX, false};
static const struct rules label_rules = {"annotation prefix", "-", KEY_PREFIX_BYTES_MAX, false};

static bool is_inside(char c, const char *inside)
{
    return dv_is_alphanumeric(c) || (c != '\0' && strchr(inside, c) != NULL);
}

static bool check_name(dv_str name, const struct rules *rules, struct dv_err *err)
{
    if (name.n == 0)
        return dv_fail(err, DV_INVALID_ARGUMENT, "the %s is empty", rules->what);
    if (name.n > rules->bytes_max)
        return dv_fail(err, DV_INVALID_ARGUMENT, "the %s has %zu bytes: at most %zu are allowed",
                       rules->what, name.n, rules->bytes_max);
    if (!(rules->needs_letter ? dv_is_letter(name.p[0]) : dv_is_alphanumeric(name.p[0])))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the %s \"%.*s\" does not begin with a letter%s",
                       rules->what, DV_FMT(name), rules->needs_letter ? "" : " or digit");
    for (size_t i = 1; i < name.n; i++) {
        if (!is_inside(name.p[i], rules->inside))
            return dv_fail(err, DV_INVALID_ARGUMENT,
                           "the %s \"%.*s\" has a character outside A-Z a-z 0-9 %s", rules->what,
                           DV_FMT(name), rules->inside);
    }
    if (!dv_is_alphanumeric(name.p[name.n - 1]))
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the %s \"%.*s\" does not end with a letter or digit", rules->what,
                       DV_FMT(name));
    return true;
}

bool dv_cdi_kind_parse(dv_str kind, dv_str *vendor, dv_str *class, struct dv_err *err)
{
    size_t slash = dv_str_find_char(kind, '/');
    dv_str first = dv_str_slice(kind, 0, slash);
    dv_str second = dv_str_slice(kind, slash + 1, kind.n);

    if (slash == kind.n)
        return dv_fail(err, DV_INVALID_ARGUMENT, "\"%.*s\" is not VENDOR/CLASS", DV_FMT(kind));
    if (!check_name(first, &vendor_rules, err) || !check_name(second, &class_rules, err))
        return false;
    *vendor = first;
    *class = second;
    return true;
}

bool dv_cdi_check_device_name(dv_str name, struct dv_err *err)
{
    return check_name(name, &device_rules, err);
}

bool dv_cdi_name_parse(dv_str text, struct dv_cdi_name *name, struct dv_err *err)
{
    size_t equals = dv_str_find_char(text, '=');
    struct dv_cdi_name parts = {.device = dv_str_slice(text, equals + 1, text.n)};

    if (equals == text.n)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "CDI device \"%.*s\": not a name like vendor.com/class=device",
                       DV_FMT(text));
    if (!dv_cdi_kind_parse(dv_str_slice(text, 0, equals), &parts.vendor, &parts.class, err) ||
        !check_name(parts.device, &device_rules, err))
        return dv_wrap(err, "CDI device \"%.*s\"", DV_FMT(text));
    *name = parts;
    return true;
}

/* -- Annotations ---------------------------------------------------------------------------- */

static bool check_prefix(dv_str prefix, struct dv_err *err)
{
    dv_str label;

    if (prefix.n > KEY_PREFIX_BYTES_MAX)
        return dv_fail(err, DV_INVALID_ARGUMENT,
                       "the annotation prefix has %zu bytes: at most %u are allowed", prefix.n,
                       KEY_PREFIX_BYTES_MAX);
    while (dv_str_split(&prefix, '.', &label)) {
        if (!check_name(label, &label_rules, err))
            return false;
    }
    return true;
}

bool dv_cdi_check_annotation_key(dv_str key, struct dv_err *err)
{
    size_t slash = dv_str_find_char(key, '/');

    if (slash == key.n)
        return check_name(key, &key_rules, err);
    return check_prefix(dv_str_slice(key, 0, slash), err) &&
           check_name(dv_str_slice(key, slash + 1, key.n), &key_rules, err);
}

bool dv_cdi_annotation_is_request(dv_str key)
{
    return dv_str_starts_with(key, ANNOTATION_PREFIX);
}

bool dv_cdi_annotation_parse(dv_str value, struct dv_arena *arena, dv_str **names, size_t *n_names,
                             struct dv_err *err)
{
    dv_str rest = value.p ? value : DV_STR("");
    struct dv_cdi_name parts;
    dv_str *found;
    size_t n = 1;

    for (size_t i = 0; i < rest.n; i++)
        n += rest.p[i] == ',';
    if (n > DV_CDI_NAMES_MAX)
        return dv_fail(err, DV_RESOURCE_EXHAUSTED,
                       "CDI annotation: %zu names: at most %u are allowed", n, DV_CDI_NAMES_MAX);
    found = DV_NEW_ARRAY(arena, dv_str, n);
    for (size_t i = 0; dv_str_split(&rest, ',', &found[i]); i++) {
        if (!dv_cdi_name_parse(found[i], &parts, err))
            return dv_wrap(err, "CDI annotation");
        if (i + 1 == n)
            break;
    }
    *names = found;
    *n_names = n;
    return true;
}
