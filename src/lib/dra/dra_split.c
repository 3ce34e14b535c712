/* dra_split.c - cuts a pool into slices that are small enough for the API. */
#include "lib/dra/dra_slices.h"

#include "base/vec.h"
#include "resource/resource.h"

/* The API's limits for one slice. */
#define DEVICES_MAX 128u
#define COMPLEX_DEVICES_MAX 64u
#define COUNTER_SETS_MAX 8u

/* Whether the device has something that takes much room: the API then allows only half as many in a
 * slice. */
static bool is_complex(const struct dv_api_device *device)
{
    if (device->n_taints > 0 || device->n_consumes_counters > 0)
        return true;
    for (size_t i = 0; i < device->n_attributes; i++) {
        const struct dv_api_device_attribute *value = &device->attributes[i].value;

        if (value->n_ints + value->n_bools + value->n_strings + value->n_versions > 0)
            return true;
    }
    return false;
}

/* Counts how many of the devices, from the first on, go into one slice. */
static size_t count_fitting(const struct dv_api_device *devices, size_t n)
{
    bool has_complex = false;

    for (size_t i = 0; i < n; i++) {
        has_complex |= is_complex(&devices[i]);
        if (i >= (has_complex ? COMPLEX_DEVICES_MAX : DEVICES_MAX))
            return i;
    }
    return n;
}

void dv_lib_slices_split(struct dv_api_device *devices, size_t n_devices,
                         struct dv_api_counter_set *counters, size_t n_counters,
                         struct dv_arena *arena, struct dv_lib_slice **slices, size_t *n_slices)
{
    DV_VEC(struct dv_lib_slice) made = {0};

    for (size_t i = 0; i < n_counters; i += COUNTER_SETS_MAX) {
        struct dv_lib_slice *slice = dv_vec_add_in(&made, arena);

        slice->counters = counters + i;
        slice->n_counters = n_counters - i < COUNTER_SETS_MAX ? n_counters - i : COUNTER_SETS_MAX;
    }
    for (size_t i = 0; i < n_devices;) {
        struct dv_lib_slice *slice = dv_vec_add_in(&made, arena);

        slice->devices = devices + i;
        slice->n_devices = count_fitting(devices + i, n_devices - i);
        i += slice->n_devices;
    }
    if (made.n == 0)
        (void)dv_vec_add_in(&made, arena);
    *slices = made.v;
    *n_slices = made.n;
}
