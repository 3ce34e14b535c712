#include "base/name.h"

#include <stddef.h>

#include "base/ascii.h"

#define LABEL_BYTES_MAX 63u
#define SUBDOMAIN_BYTES_MAX 253u

/* Letters of the alphabet that `fold` makes of them, and digits; dashes inside. */
bool dv_has_label_form(dv_str s, bool fold)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = fold ? dv_to_lower(s.p[i]) : s.p[i];

        if (!dv_is_lower_or_digit(c) && (c != '-' || i == 0 || i + 1 == s.n))
            return false;
    }
    return s.n > 0;
}

/* Labels with dots between them. A dash or a dot is neither first nor last, and no dot stands
 * beside another or beside a dash. */
bool dv_has_subdomain_form(dv_str s, bool fold)
{
    char last = '.';

    for (size_t i = 0; i < s.n; i++) {
        char c = fold ? dv_to_lower(s.p[i]) : s.p[i];

        if (!dv_is_lower_or_digit(c) &&
            (c == '-' ? last == '.' : c != '.' || last == '.' || last == '-'))
            return false;
        last = c;
    }
    return last != '.' && last != '-';
}

/* Whether the text has the form that names and values of labels share. */
bool dv_has_name_form(dv_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (dv_is_alphanumeric(c))
            continue;
        if ((c != '-' && c != '_' && c != '.') || i == 0 || i + 1 == s.n)
            return false;
    }
    return s.n > 0;
}

bool dv_is_dns_label(dv_str name)
{
    return name.n <= LABEL_BYTES_MAX && dv_has_label_form(name, false);
}

bool dv_is_dns1035_label(dv_str name)
{
    return dv_is_dns_label(name) && dv_is_lower(name.p[0]);
}

bool dv_is_dns_subdomain(dv_str name)
{
    return name.n <= SUBDOMAIN_BYTES_MAX && dv_has_subdomain_form(name, false);
}

bool dv_is_label_name(dv_str key)
{
    size_t slash = dv_str_find_char(key, '/');

    if (slash < key.n) {
        if (!dv_is_dns_subdomain(dv_str_slice(key, 0, slash)))
            return false;
        key = dv_str_slice(key, slash + 1, key.n);
    }
    return key.n <= LABEL_BYTES_MAX && dv_has_name_form(key);
}

bool dv_is_label_value(dv_str value)
{
    return value.n == 0 || (value.n <= LABEL_BYTES_MAX && dv_has_name_form(value));
}
