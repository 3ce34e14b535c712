/* report.h - logs what the engine wanted to do by itself and could not. */
#ifndef DV_CLUSTER_REPORT_H
#define DV_CLUSTER_REPORT_H

struct dv_api_status;

/* "cluster: WHAT; trying again" with the failure. */
void dv_report_retry(const char *what, const struct dv_api_status *failure);

#endif
