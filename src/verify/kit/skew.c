#include "verify/kit/skew.h"

#include "base/defs.h"

/* From the release notes and sources of each. resource.k8s.io/v1alpha3, which 1.31 had, is not
 * served by davit: its drivers find v1beta1 there, which has the same fields. */
static const struct dv_skew releases[] = {
    {.name = DV_STR_INIT("1.31"),
     .services = {DV_DRA_V1ALPHA3},
     .n_services = 1,
     .has_any_version = true,
     .api_versions = {DV_STR_INIT("v1beta1")},
     .n_api_versions = 1                                                 },
    {.name = DV_STR_INIT("1.32"),
     .services = {DV_DRA_V1BETA1, DV_DRA_V1ALPHA3},
     .n_services = 2,
     .api_versions = {DV_STR_INIT("v1beta1")},
     .n_api_versions = 1                     },
    {.name = DV_STR_INIT("1.33"),
     .services = {DV_DRA_V1BETA1, DV_DRA_V1ALPHA3},
     .n_services = 2,
     .api_versions = {DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1")},
     .n_api_versions = 2                   },
    {.name = DV_STR_INIT("1.34"),
     .services = {DV_DRA_V1, DV_DRA_V1BETA1},
     .n_services = 2,
     .has_health = true,
     .api_versions = {DV_STR_INIT("v1"), DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1")},
     .n_api_versions = 3                          },
    {.name = DV_STR_INIT("1.35"),
     .services = {DV_DRA_V1, DV_DRA_V1BETA1},
     .n_services = 2,
     .has_health = true,
     .api_versions = {DV_STR_INIT("v1"), DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1")},
     .n_api_versions = 3},
    {.name = DV_STR_INIT("1.36"),
     .services = {DV_DRA_V1, DV_DRA_V1BETA1},
     .n_services = 2,
     .has_health = true,
     .api_versions = {DV_STR_INIT("v1"), DV_STR_INIT("v1beta2"), DV_STR_INIT("v1beta1")},
     .n_api_versions = 3},
};

const struct dv_skew *dv_skew_find(dv_str name)
{
    if (name.n == 0)
        return &releases[DV_COUNT(releases) - 1];
    for (size_t i = 0; i < DV_COUNT(releases); i++)
        if (dv_str_eq(releases[i].name, name))
            return &releases[i];
    return NULL;
}

const char *dv_skew_names(void)
{
    return "1.31, 1.32, 1.33, 1.34, 1.35 or 1.36";
}

static bool has_version(const dv_str *versions, size_t n_versions, const char *name)
{
    for (size_t i = 0; i < n_versions; i++)
        if (dv_str_eq(versions[i], dv_str_from_c(name)))
            return true;
    return false;
}

/* "1.0.0": how drivers named their version before services had names. */
static bool has_number(const dv_str *versions, size_t n_versions)
{
    for (size_t i = 0; i < n_versions; i++)
        if (versions[i].n > 0 && versions[i].p[0] >= '0' && versions[i].p[0] <= '9')
            return true;
    return false;
}

bool dv_skew_choose(const struct dv_skew *release, const dv_str *versions, size_t n_versions,
                    enum dv_dra_service *service)
{
    for (size_t i = 0; i < release->n_services; i++) {
        *service = release->services[i];
        if (release->has_any_version
                ? has_number(versions, n_versions)
                : has_version(versions, n_versions, dv_dra_service_name(release->services[i])))
            return true;
    }
    /* 1.32 and 1.33 took drivers that list nothing they know for old ones. */
    return !release->has_any_version && *service == DV_DRA_V1ALPHA3;
}

bool dv_skew_has_api(const struct dv_skew *release, dv_str version)
{
    for (size_t i = 0; i < release->n_api_versions; i++)
        if (dv_str_eq(release->api_versions[i], version))
            return true;
    return false;
}
