/* image.h - the names of container images: [registry/]path[:tag][@digest]. */
#ifndef DV_RESOURCE_IMAGE_H
#define DV_RESOURCE_IMAGE_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_err;

/* Whether the tag is `latest`, or there is neither tag nor digest. False for a text that is no
 * image's name. */
bool dv_image_is_latest(dv_str image);

/* DV_INVALID_ARGUMENT: not the name of an image, with the reference's text. */
DV_CHECKED bool dv_image_check(dv_str image, struct dv_err *err);
/* Whether a name has neither tag nor digest; the name is a good one. */
bool dv_image_is_bare(dv_str image);

#endif
