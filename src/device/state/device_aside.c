/* device_aside.c - devices that are kept back while other devices are chosen for a pod; the words
 * are explained in device_state.h. */
#include "base/map.h"
#include "base/str.h"
#include "device/device.h"
#include "device/state/device_state.h"

static struct dv_device *find(struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device_resource *known = dv_map_get(&state->resources, resource);

    return known ? dv_map_get(&known->devices, id) : NULL;
}

bool dv_device_keep_back(struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device *device = find(state, resource, id);

    if (!device)
        return false;
    device->n_reserved++;
    dv_device_refresh(device);
    return true;
}

void dv_device_let_go(struct dv_device_state *state, dv_str resource, dv_str id)
{
    struct dv_device *device = find(state, resource, id); /* a reserved device is always there */

    device->n_reserved--;
    dv_device_refresh(device);
    dv_device_drop(device);
}
