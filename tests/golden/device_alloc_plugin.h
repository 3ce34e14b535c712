/* device_alloc_plugin.h - the simulated plugin of golden/device-alloc, on the generated messages.
 */
#ifndef DV_GOLDEN_DEVICE_ALLOC_PLUGIN_H
#define DV_GOLDEN_DEVICE_ALLOC_PLUGIN_H

#include <stdbool.h>

#include "base/str.h"

struct dv_arena;
struct dv_device_step;
struct dv_err;
struct dv_json;

struct stub {
    dv_str resource;
    dv_str socket;
    dv_str preferred; /* how it behaves; empty where it was not told */
    dv_str pre_start;
    dv_str allocate;
    dv_str profile;
};

/* Answers the call, and describes it as the corpus does. False: it fails with `status`. */
bool stub_answer(const struct stub *stub, const struct dv_device_step *step, struct dv_arena *arena,
                 dv_str *response, struct dv_json **call, struct dv_err *status);
/* A ListAndWatch answer from the devices of an op. */
dv_str stub_list(const struct dv_json *devices, struct dv_arena *arena);

/* A list of texts in the order of their bytes. */
struct dv_json *sorted_to_json(const dv_str *texts, size_t n, struct dv_arena *arena);

#endif
