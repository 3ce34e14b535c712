/* cases.h - the groups of cases, a file each. */
#ifndef DV_VERIFY_CASES_H
#define DV_VERIFY_CASES_H

#include <stddef.h>

#include "verify/kit/verify_case.h"

extern const struct dv_verify_group dv_plugin_registration_cases;
extern const struct dv_verify_group dv_plugin_list_cases;
extern const struct dv_verify_group dv_plugin_allocate_cases;
extern const struct dv_verify_group dv_plugin_choice_cases;
extern const struct dv_verify_group dv_plugin_life_cases;
extern const struct dv_verify_group dv_dra_registration_cases;
extern const struct dv_verify_group dv_dra_slices_cases;
extern const struct dv_verify_group dv_dra_prepare_cases;
extern const struct dv_verify_group dv_dra_device_cases;
extern const struct dv_verify_group dv_dra_unprepare_cases;
extern const struct dv_verify_group dv_dra_life_cases;
extern const struct dv_verify_group dv_dra_api_cases;

/* All groups, in the order of reports. */
extern const struct dv_verify_group *const dv_verify_groups[];
extern const size_t dv_n_verify_groups;

#endif
