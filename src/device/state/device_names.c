#include "base/err.h"
#include "device/device.h"
#include "resource/validate.h"

bool dv_device_name_check(dv_str resource, struct dv_err *err)
{
    return dv_is_extended_resource_name(resource) ||
           dv_fail(err, DV_INVALID_ARGUMENT, "the ResourceName \"%.*s\" is invalid",
                   DV_FMT(resource));
}
