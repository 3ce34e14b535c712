/* pull_secret.h - the credentials that pull secrets have for an image, found as the reference finds
 * them. Pure. What is in here is secret: it goes to the runtime, and never into a log or event. */
#ifndef DV_POD_PULL_SECRET_H
#define DV_POD_PULL_SECRET_H

#include <stddef.h>

#include "base/str.h"

struct dv_api_secret;
struct dv_arena;

struct dv_pull_auth {
    dv_str username;
    dv_str password;
};

/* Sets *auths to the credentials for the image, those of the longest address first, and of the same
 * address in the order of the secrets. Secrets of other types, what cannot be read, and what is
 * more than a few megabytes together count for nothing. */
size_t dv_pull_secret_find(const struct dv_api_secret *const *secrets, size_t n_secrets,
                           dv_str image, struct dv_arena *arena, struct dv_pull_auth **auths);

/* The registry that the image is pulled from: "registry.example.com:5000", or Docker's. */
dv_str dv_pull_registry(dv_str image);

#endif
