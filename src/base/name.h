/* name.h - the forms that names have in Kubernetes (k8s.io/apimachinery/pkg/util/validation). */
#ifndef DV_BASE_NAME_H
#define DV_BASE_NAME_H

#include <stdbool.h>

#include "base/str.h"

bool dv_is_dns_label(dv_str name);     /* RFC 1123: lower case, digits, dashes inside */
bool dv_is_dns1035_label(dv_str name); /* one that begins with a letter */
bool dv_is_dns_subdomain(dv_str name); /* labels with dots between them */
bool dv_is_label_name(dv_str key);     /* [prefix/]name */
bool dv_is_label_value(dv_str value);  /* may be empty */

/* Like dv_is_dns_label and dv_is_dns_subdomain, for any length; `fold` allows capital letters. */
bool dv_has_label_form(dv_str name, bool fold);
bool dv_has_subdomain_form(dv_str name, bool fold);
/* Letters, digits, and - _ . between them: what names and values of labels are made of. */
bool dv_has_name_form(dv_str name);

#endif
