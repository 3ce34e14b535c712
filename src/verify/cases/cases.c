#include "verify/cases/cases.h"

#include "base/defs.h"

const struct dv_verify_group *const dv_verify_groups[] = {
    &dv_plugin_registration_cases, &dv_plugin_list_cases, &dv_plugin_allocate_cases,
    &dv_plugin_choice_cases,       &dv_plugin_life_cases, &dv_dra_registration_cases,
    &dv_dra_slices_cases,          &dv_dra_prepare_cases, &dv_dra_device_cases,
    &dv_dra_unprepare_cases,       &dv_dra_life_cases,    &dv_dra_api_cases,
};
const size_t dv_n_verify_groups = DV_COUNT(dv_verify_groups);
