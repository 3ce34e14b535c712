/* skew.h - what releases of Kubernetes offer to drivers, for --emulate. */
#ifndef DV_VERIFY_SKEW_H
#define DV_VERIFY_SKEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "claim/claim.h"

struct dv_skew {
    dv_str name;                     /* "1.34" */
    enum dv_dra_service services[2]; /* of drivers that this kubelet calls, the best first */
    size_t n_services;
    bool has_health;        /* watches device health */
    bool has_any_version;   /* knows drivers by "1.0.0" instead of by services */
    dv_str api_versions[3]; /* of resource.k8s.io, the preferred first */
    size_t n_api_versions;
};

/* The newest for an empty name; NULL: there is none of that name. */
const struct dv_skew *dv_skew_find(dv_str name);
/* "1.31, 1.32, ..." */
const char *dv_skew_names(void);
/* Chooses the service by which this kubelet calls a driver that lists these versions. False: it
 * refuses the driver. */
bool dv_skew_choose(const struct dv_skew *release, const dv_str *versions, size_t n_versions,
                    enum dv_dra_service *service);
bool dv_skew_has_api(const struct dv_skew *release, dv_str version);

#endif
