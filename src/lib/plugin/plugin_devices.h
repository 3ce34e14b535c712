/* plugin_devices.h - the devices of a plugin, and the message that tells them. */
#ifndef DV_LIB_PLUGIN_DEVICES_H
#define DV_LIB_PLUGIN_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct davit_device;
struct dv_err;
struct dv_h2_msg;
struct dv_lib_devices;

/* Copies and checks the list. DV_INVALID_ARGUMENT, DV_RESOURCE_EXHAUSTED: see
 * davit_device_plugin_set_devices. */
struct dv_lib_devices *dv_lib_devices_new(const struct davit_device *devices, size_t n,
                                          struct dv_err *err);
void dv_lib_devices_free(struct dv_lib_devices *devices); /* NULL is fine */

bool dv_lib_devices_has(const struct dv_lib_devices *devices, dv_str id);
/* Sets the health of a device. DV_NOT_FOUND: there is none of that id. */
DV_CHECKED bool dv_lib_devices_set_health(struct dv_lib_devices *devices, dv_str id,
                                          bool is_healthy, struct dv_err *err);

/* Makes a ListAndWatchResponse, with one reference. The same devices give the same bytes. */
struct dv_h2_msg *dv_lib_devices_encode(const struct dv_lib_devices *devices);

#endif
