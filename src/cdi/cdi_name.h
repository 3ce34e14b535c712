/* cdi_name.h - the rules for the parts of names. Each says what is wrong with the value, not whose
 * it is. */
#ifndef DV_CDI_NAME_H
#define DV_CDI_NAME_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* "vendor.com/gpu" into its halves, and both of them checked. */
DV_CHECKED bool dv_cdi_kind_parse(dv_str kind, dv_str *vendor, dv_str *class, struct dv_err *err);
DV_CHECKED bool dv_cdi_check_device_name(dv_str name, struct dv_err *err);
/* Checks a key as Kubernetes does for annotations: "[prefix/]name", the prefix in either case. */
DV_CHECKED bool dv_cdi_check_annotation_key(dv_str key, struct dv_err *err);

#endif
