/* cel_device.h - a device as expressions see it. */
#ifndef DV_CEL_DEVICE_H
#define DV_CEL_DEVICE_H

#include "cel/value/cel_value.h"

struct dv_cel_device {
    struct dv_cel_val self;  /* the map that `device` is */
    struct dv_cel_val fault; /* an error when an attribute cannot be used; null otherwise */
};

#endif
