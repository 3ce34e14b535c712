#include "cluster/embedded/report.h"

#include "base/err.h"
#include "base/log.h"
#include "resource/status.h"

void dv_report_retry(const char *what, const struct dv_api_status *failure)
{
    struct dv_err err;

    dv_status_to_err(failure, &err);
    dv_log(DV_LOG_WARN, "cluster: trying again", DV_F_C("what", what), DV_F_ERR(&err));
}
