/* lease_request.h - the devices that a command line asks for. */
#ifndef DV_CLI_LEASE_REQUEST_H
#define DV_CLI_LEASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "proto/davit_node_v1.pb-c.h"

struct dv_cli;
struct dv_err;

/* Reads "nvidia.com/gpu=2"; without a number it is 1. DV_INVALID_ARGUMENT. */
DV_CHECKED bool dv_lease_word_parse(dv_str word, dv_str *resource, uint64_t *count,
                                    struct dv_err *err);

/* Fills in what the words and the options ask for, and for how long; `words` are those that name
 * resources. Everything is in cli->arena. DV_INVALID_ARGUMENT. */
DV_CHECKED bool dv_lease_request_make(struct dv_cli *cli, const dv_str *words, size_t n_words,
                                      NodeV1__TakeLeaseRequest *request, struct dv_err *err);

#endif
