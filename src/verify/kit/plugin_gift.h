/* plugin_gift.h - what a device plugin gives a container for its devices: an answer of Allocate
 * held against another. */
#ifndef DV_VERIFY_PLUGIN_GIFT_H
#define DV_VERIFY_PLUGIN_GIFT_H

#include <stdbool.h>

#include "proto/deviceplugin_v1beta1.pb-c.h"

typedef const DpV1beta1__ContainerAllocateResponse dv_gift;

bool dv_gift_is_empty(dv_gift *gift);
/* Whether both give a container the same. No order says anything: that of Go's maps changes from
 * call to call. */
bool dv_gift_is_same(dv_gift *a, dv_gift *b);
/* Whether a node of the host is in it, under whatever path. */
bool dv_gift_has_host_path(dv_gift *gift, const char *path);

#endif
