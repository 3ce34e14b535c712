/* device_message.h - messages to and from plugins, for the files of this folder. */
#ifndef DV_DEVICE_MESSAGE_H
#define DV_DEVICE_MESSAGE_H

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_err;

/* Finds the first ContainerAllocateResponse of an AllocateResponse, in place. `has_one` is false
 * when there is none. */
DV_CHECKED bool dv_device_first_response(dv_str response, dv_str *first, bool *has_one,
                                         struct dv_err *err);
/* Decodes the ids of the first ContainerPreferredAllocationResponse; none when there is no such
 * response. Their text stays in `response`. */
DV_CHECKED bool dv_device_preferred_decode(dv_str response, struct dv_arena *arena,
                                           const dv_str **ids, size_t *n_ids, struct dv_err *err);
/* Whether the bytes are a ContainerAllocateResponse (device_options.c). DV_INVALID_ARGUMENT: they
 * are not. */
DV_CHECKED bool dv_device_response_check(dv_str response, struct dv_err *err);

#endif
