/* image.h - the names of container images: [registry/]path[:tag][@digest]. */
#ifndef DV_RESOURCE_IMAGE_H
#define DV_RESOURCE_IMAGE_H

#include <stdbool.h>

#include "base/str.h"

/* Whether the tag is `latest`, or there is neither tag nor digest. False for a text that is no
 * image's name. */
bool dv_image_is_latest(dv_str image);

#endif
